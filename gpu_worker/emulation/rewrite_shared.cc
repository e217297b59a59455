#include "gpu_worker/emulation/rewrite_shared.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kmosaic {

namespace {

constexpr std::size_t kNone = MaskedSource::kNone;
constexpr std::string_view kShared = "__shared__";
// A longer one is none; it bounds what a scan looks at per declaration.
constexpr std::size_t kLongestDeclaration = 8192;

// What a brace opened.
struct Scope {
  bool is_function = false;
  std::vector<std::string> shared;  // types of the static shared variables declared in it
};

// Follows the braces of a source from left to right.
class ScopeTracker {
 public:
  explicit ScopeTracker(const MaskedSource& source) : source_(source) {}

  void AdvanceTo(std::size_t position) {
    const std::string_view code = source_.code();
    for (; position_ < position; ++position_) {
      if (source_.InDirective(position_)) {
        statement_ = position_ + 1;
        continue;
      }
      switch (code[position_]) {
        case '{':
          scopes_.push_back({InFunction() || OpensFunction(), {}});
          statement_ = position_ + 1;
          break;
        case '}':
          if (!scopes_.empty()) scopes_.pop_back();
          statement_ = position_ + 1;
          break;
        case ';':
          statement_ = position_ + 1;
          break;
        default:
          break;
      }
    }
  }

  bool InFunction() const { return !scopes_.empty() && scopes_.back().is_function; }
  // Position after the last ; { } or directive.
  std::size_t statement() const { return statement_; }
  void AddShared(std::string type) { scopes_.back().shared.push_back(std::move(type)); }
  std::vector<std::string> VisibleShared() const {
    std::vector<std::string> all;
    for (const Scope& scope : scopes_) {
      all.insert(all.end(), scope.shared.begin(), scope.shared.end());
    }
    return all;
  }

 private:
  // The text before a function's brace has a parameter list; that before a namespace's, class's
  // or linkage's has none.
  bool OpensFunction() const {
    const std::string_view head = source_.code().substr(statement_, position_ - statement_);
    return head.find('(') != kNone;
  }

  const MaskedSource& source_;
  std::size_t position_ = 0;
  std::size_t statement_ = 0;
  std::vector<Scope> scopes_;
};

bool IsIdentifierStart(char c) { return IsIdentifierCharacter(c) && !(c >= '0' && c <= '9'); }

// Blanks a whole identifier (and, with_arguments, the bracket after it) in `text`, keeping its
// length.
void Blank(std::string* text, std::string_view word, bool with_arguments) {
  for (std::size_t at = text->find(word); at != std::string::npos; at = text->find(word, at + 1)) {
    std::size_t end = at + word.size();
    if ((at > 0 && IsIdentifierCharacter((*text)[at - 1])) ||
        (end < text->size() && IsIdentifierCharacter((*text)[end]))) {
      continue;
    }
    if (with_arguments) {
      std::size_t depth = 0;
      while (end < text->size()) {
        const char c = (*text)[end];
        if (c == '(') ++depth;
        if (c == ')' && --depth == 0) {
          ++end;
          break;
        }
        if (depth == 0 && c != ' ' && c != '\n' && c != '\t') break;
        ++end;
      }
    }
    for (std::size_t i = at; i < end; ++i) {
      if ((*text)[i] != '\n') (*text)[i] = ' ';
    }
  }
}

// The name that one declarator ("float tile[16][17]", "*p", "(*q)[3]") declares; empty when none
// can be made out.
std::string DeclaredName(std::string_view declarator) {
  std::string name;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < declarator.size(); ++i) {
    const char c = declarator[i];
    if (c == '[' || c == '{' || c == '<') ++depth;
    if ((c == ']' || c == '}' || c == '>') && depth > 0) --depth;
    if (depth != 0 || !IsIdentifierStart(c) ||
        (i > 0 && IsIdentifierCharacter(declarator[i - 1]))) {
      continue;
    }
    std::size_t end = i;
    while (end < declarator.size() && IsIdentifierCharacter(declarator[end])) ++end;
    const std::string_view word = declarator.substr(i, end - i);
    const std::size_t next = declarator.find_first_not_of(" \t\n", end);
    const bool is_attribute = word == "__align__" || word == "alignas" || word == "__attribute__";
    if (is_attribute) {
      // Its argument is no declarator.
      std::size_t parens = 0;
      for (i = next; i < declarator.size(); ++i) {
        if (declarator[i] == '(') ++parens;
        if (declarator[i] == ')' && --parens == 0) break;
      }
      if (i >= declarator.size()) break;
      continue;
    }
    name = std::string(word);
    i = end - 1;
  }
  return name;
}

// The names in "float a[2], b": split at commas outside of brackets.
std::vector<std::string> DeclaredNames(std::string_view declaration) {
  std::vector<std::string> names;
  std::size_t depth = 0, start = 0;
  for (std::size_t i = 0; i <= declaration.size(); ++i) {
    const char c = i == declaration.size() ? ',' : declaration[i];
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if ((c == ')' || c == ']' || c == '}' || c == '>') && depth > 0) --depth;
    if (c != ',' || depth != 0) continue;
    std::string_view part = declaration.substr(start, i - start);
    part = part.substr(0, part.find('='));
    std::string name = DeclaredName(part);
    if (name.empty()) return {};
    names.push_back(std::move(name));
    start = i + 1;
  }
  return names;
}

bool HasWord(std::string_view text, std::string_view word) {
  return MaskedSource(text).HasIdentifier(word);
}

struct Declaration {
  std::size_t begin;  // of the statement, white space before it left out
  std::size_t token;  // of __shared__
  std::size_t end;    // of the ';'
};

// "extern __shared__ T name[];" -> a pointer to the launch's dynamic shared memory.
std::optional<std::string> DynamicReplacement(std::string text, bool in_function) {
  for (const std::string_view word : {"extern", "static", "__shared__"}) {
    Blank(&text, word, false);
  }
  for (const std::string_view word : {"__align__", "alignas", "__attribute__"}) {
    Blank(&text, word, true);
  }
  const std::size_t bracket = text.find('[');
  if (bracket == std::string::npos) return std::nullopt;
  std::size_t name_end = bracket;
  while (name_end > 0 && !IsIdentifierCharacter(text[name_end - 1])) --name_end;
  std::size_t name_begin = name_end;
  while (name_begin > 0 && IsIdentifierCharacter(text[name_begin - 1])) --name_begin;
  const std::string type = text.substr(0, name_begin);
  const std::string name = text.substr(name_begin, name_end - name_begin);
  const std::size_t first_close = text.find(']', bracket);
  if (name.empty() || first_close == std::string::npos ||
      type.find_first_not_of(" \t\n") == std::string::npos) {
    return std::nullopt;
  }
  const std::string inner = text.substr(first_close + 1);  // further dimensions
  if (!in_function) {
    return absl::StrCat("static ::kmosaic_emulation::DynamicShared<", type, "> ", name, inner);
  }
  return absl::StrCat(type, "(*const ", name, ")", inner, " = reinterpret_cast<", type, "(*)",
                      inner, ">(::kmosaic_emu_dynamic_shared())");
}

class SharedRewriter {
 public:
  SharedRewriter(const MaskedSource& source, TextEdits* edits)
      : source_(source), edits_(edits), scopes_(source) {}

  void Run() {
    for (std::size_t at = source_.FindIdentifier(kShared, 0); at != kNone;
         at = source_.FindIdentifier(kShared, at + kShared.size())) {
      if (!source_.InDirective(at)) Rewrite(at);
    }
  }

 private:
  void Rewrite(std::size_t token) {
    scopes_.AdvanceTo(token);
    const std::string_view code = source_.code();
    Declaration declaration{source_.SkipSpace(scopes_.statement()), token, kNone};
    if (token - declaration.begin > kLongestDeclaration) return;
    // In a parameter list the qualifier says nothing.
    if (std::count(code.begin() + static_cast<std::ptrdiff_t>(declaration.begin),
                   code.begin() + static_cast<std::ptrdiff_t>(token),
                   '(') != std::count(code.begin() + static_cast<std::ptrdiff_t>(declaration.begin),
                                      code.begin() + static_cast<std::ptrdiff_t>(token), ')')) {
      edits_->Replace(token, token + kShared.size(), "");
      return;
    }
    std::size_t depth = 0;
    for (std::size_t i = token; i < std::min(code.size(), token + kLongestDeclaration); ++i) {
      const char c = code[i];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) return;
        --depth;
      }
      if (c == ';' && depth == 0) {
        declaration.end = i;
        break;
      }
    }
    if (declaration.end == kNone) return;
    // A label before the declaration ("case 1: __shared__ ...") is not part of it.
    const std::string_view head = code.substr(declaration.begin, token - declaration.begin);
    for (std::size_t i = head.size(); i-- > 0;) {
      if (head[i] != ':') continue;
      const bool is_scope =
          (i > 0 && head[i - 1] == ':') || (i + 1 < head.size() && head[i + 1] == ':');
      if (is_scope) continue;
      declaration.begin = source_.SkipSpace(declaration.begin + i + 1);
      break;
    }
    std::string text(code.substr(declaration.begin, declaration.end - declaration.begin));
    if (HasWord(text, "extern")) {
      if (auto replacement = DynamicReplacement(text, scopes_.InFunction())) {
        edits_->Replace(declaration.begin, declaration.end, std::move(*replacement));
      }
      return;
    }
    if (scopes_.InFunction()) {
      RewriteStatic(declaration, std::move(text));
    } else {
      Blank(&text, "static", false);  // __shared__ itself becomes "static"
      edits_->Replace(declaration.begin, declaration.end, std::move(text));
    }
  }

  void RewriteStatic(const Declaration& declaration, std::string text) {
    Blank(&text, "static", false);
    Blank(&text, kShared, false);
    const std::vector<std::string> names = DeclaredNames(text);
    if (names.empty()) return;
    const std::string number = std::to_string(count_++);
    const std::string type = "KmosaicShared" + number;
    scopes_.AddShared(type);
    const std::vector<std::string> visible = scopes_.VisibleShared();
    std::string out = absl::StrCat(
        "struct ", type, " { ", text, "; }; static_assert(",
        absl::StrJoin(visible, " + ",
                      [](std::string* sum, const std::string& name) {
                        absl::StrAppend(sum, "sizeof(", name, ")");
                      }),
        " <= 49152, \"static shared memory of a kernel above 48 KiB (0xc000 bytes): the device "
        "assembler refuses it\"); static ::KmEmuSharedSite kmosaic_site",
        number, "; auto& kmosaic_shared", number, " = ::kmosaic_emulation::SharedVariable<", type,
        ">(&kmosaic_site", number, ", \"", absl::StrJoin(names, ", "), "\")");
    for (const std::string& name : names) {
      absl::StrAppend(&out, "; auto& ", name, " = kmosaic_shared", number, ".", name);
    }
    edits_->Replace(declaration.begin, declaration.end, std::move(out));
  }

  const MaskedSource& source_;
  TextEdits* edits_;
  ScopeTracker scopes_;
  unsigned long long count_ = 0;
};

}  // namespace

void RewriteSharedMemory(const MaskedSource& source, TextEdits* edits) {
  SharedRewriter(source, edits).Run();
}

}  // namespace kmosaic

// Names of the ATen operations that the light headers pass on to torch, by what they return.
#ifndef KMOSAIC_TORCH_OPERATION_NAMES_H_
#define KMOSAIC_TORCH_OPERATION_NAMES_H_

// One tensor, as methods and as functions.
#define KMOSAIC_TORCH_BOTH(X)                                                                    \
  X(abs) X(acos) X(add) X(addbmm) X(addcdiv) X(addcmul) X(addmm) X(addmv) X(addr) X(all)         \
  X(amax) X(amin) X(any) X(argmax) X(argmin) X(argsort) X(as_strided) X(asin) X(atan)            \
  X(atan2) X(baddbmm) X(bernoulli) X(bincount) X(bitwise_and) X(bitwise_not) X(bitwise_or)       \
  X(bitwise_xor) X(bmm) X(ceil) X(celu) X(clamp) X(clamp_max) X(clamp_min) X(clip) X(clone)      \
  X(conj) X(cos) X(cosh) X(count_nonzero) X(cross) X(cumprod) X(cumsum) X(deg2rad) X(diag)       \
  X(diagonal) X(diff) X(dist) X(div) X(divide) X(dot) X(eq) X(erf) X(erfc) X(erfinv) X(exp)      \
  X(exp2) X(expm1) X(flatten) X(flip) X(floor) X(floor_divide) X(fmod) X(frac) X(gather) X(ge)   \
  X(gt) X(hardshrink) X(index_add) X(index_copy) X(index_fill) X(index_select) X(inner)          \
  X(inverse) X(isfinite) X(isinf) X(isnan) X(kron) X(le) X(lerp) X(lgamma) X(log) X(log10)       \
  X(log1p) X(log2) X(log_softmax) X(logaddexp) X(logical_and) X(logical_not) X(logical_or)       \
  X(logit) X(logsumexp) X(lt) X(masked_fill) X(masked_select) X(matmul) X(maximum) X(mean)       \
  X(minimum) X(mm) X(movedim) X(mul) X(multiply) X(mv) X(nan_to_num) X(narrow) X(ne) X(neg)      \
  X(negative) X(nonzero) X(norm) X(outer) X(permute) X(pow) X(prelu) X(prod) X(reciprocal)       \
  X(relu) X(remainder) X(repeat_interleave) X(reshape) X(roll) X(rot90) X(round) X(rsqrt)        \
  X(rsub) X(scatter) X(scatter_add) X(select) X(sgn) X(sigmoid) X(sign) X(sin) X(sinh)           \
  X(slice) X(softmax) X(sqrt) X(square) X(squeeze) X(std) X(sub) X(subtract) X(sum)              \
  X(swapaxes) X(t) X(take) X(tan) X(tanh) X(tile) X(trace) X(transpose) X(tril) X(triu)          \
  X(trunc) X(unflatten) X(unsqueeze) X(var) X(vdot) X(where) X(xlogy)

// One tensor, as methods alone.
#define KMOSAIC_TORCH_METHODS(X)                                                                 \
  KMOSAIC_TORCH_BOTH(X)                                                                          \
  X(expand) X(expand_as) X(new_empty) X(new_full) X(new_ones) X(new_zeros) X(repeat)             \
  X(reshape_as) X(type_as) X(unfold) X(view) X(view_as)                                          \
  X(sum_to_size)

#define KMOSAIC_TORCH_IN_PLACE_METHODS(X)                                                        \
  X(abs_) X(add_) X(addcdiv_) X(addcmul_) X(addmm_) X(bernoulli_) X(ceil_) X(clamp_)             \
  X(clamp_max_) X(clamp_min_) X(copy_) X(cos_) X(div_) X(erf_) X(exp_) X(fill_) X(floor_)        \
  X(index_add_) X(index_copy_) X(index_fill_) X(log_) X(lerp_) X(masked_fill_) X(mul_) X(neg_)   \
  X(normal_) X(pow_) X(random_) X(reciprocal_) X(relu_) X(requires_grad_) X(resize_) X(round_)   \
  X(rsqrt_) X(scatter_) X(scatter_add_) X(sigmoid_) X(sin_) X(sqrt_) X(squeeze_) X(sub_)         \
  X(t_) X(tanh_) X(transpose_) X(tril_) X(triu_) X(uniform_) X(unsqueeze_) X(zero_)

// One tensor, as functions alone.
#define KMOSAIC_TORCH_FUNCTIONS(X)                                                               \
  KMOSAIC_TORCH_BOTH(X) X(adaptive_avg_pool1d) X(adaptive_avg_pool2d) X(adaptive_avg_pool3d)     \
  X(alpha_dropout) X(batch_norm) X(bilinear) X(binary_cross_entropy)                             \
  X(binary_cross_entropy_with_logits) X(cdist) X(constant_pad_nd) X(convolution)                 \
  X(cosine_embedding_loss) X(cosine_similarity) X(cross_entropy_loss) X(dropout) X(elu)          \
  X(embedding) X(gelu) X(glu) X(group_norm) X(hardsigmoid) X(hardswish) X(hardtanh)              \
  X(hinge_embedding_loss) X(huber_loss) X(im2col) X(instance_norm) X(kl_div) X(l1_loss)          \
  X(layer_norm) X(leaky_relu) X(linear) X(mish) X(mse_loss) X(nll_loss) X(one_hot) X(pad)        \
  X(pairwise_distance) X(pixel_shuffle) X(relu6) X(rms_norm) X(rrelu)                            \
  X(scaled_dot_product_attention) X(selu) X(silu) X(smooth_l1_loss) X(softplus) X(softshrink)    \
  X(threshold) X(triplet_margin_loss) X(upsample_bilinear2d) X(upsample_nearest2d)               \
  X(tensordot)

#define KMOSAIC_TORCH_LIST_METHODS(X) X(chunk) X(split) X(split_with_sizes) X(tensor_split) X(unbind)
#define KMOSAIC_TORCH_EXTREMUM_METHODS(X) X(max) X(min) X(median)
#define KMOSAIC_TORCH_PAIR_METHODS(X) X(topk) X(sort) X(mode) X(kthvalue) X(cummax) X(cummin)

#endif  // KMOSAIC_TORCH_OPERATION_NAMES_H_

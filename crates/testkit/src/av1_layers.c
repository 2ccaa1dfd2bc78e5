/* Encodes raw pictures (I420, standard input) as AV1 with temporal layers into IVF (standard output), as programs for calls do
 * with libaom's real-time mode; ffmpeg has no option for it.
 *
 *   av1_layers WIDTH HEIGHT LAYERS KBIT_PER_S KEY_INTERVAL [MODE]
 *
 * LAYERS is 1, 2 (0 1) or 3 (0 2 1 2). MODE "chained" lets the top layer refer to itself, which no receiver can have in parts. */
#include <aom/aom_encoder.h>
#include <aom/aomcx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what) {
  fprintf(stderr, "av1_layers: %s\n", what);
  exit(1);
}

static void put(unsigned long long value, int bytes) {
  for (; bytes > 0; bytes--, value >>= 8) putchar((int)(value & 255));
}

int main(int argc, char **argv) {
  if (argc < 6) die("WIDTH HEIGHT LAYERS KBIT_PER_S KEY_INTERVAL [chained]");
  const unsigned width = atoi(argv[1]), height = atoi(argv[2]), layers = atoi(argv[3]);
  const unsigned rate = atoi(argv[4]), interval = atoi(argv[5]);
  const int is_chained = argc > 6 && !strcmp(argv[6], "chained");

  aom_codec_iface_t *av1 = aom_codec_av1_cx();
  aom_codec_enc_cfg_t config;
  aom_codec_ctx_t codec;
  if (aom_codec_enc_config_default(av1, &config, AOM_USAGE_REALTIME)) die("no configuration");
  config.g_w = width;
  config.g_h = height;
  config.g_timebase.num = 1;
  config.g_timebase.den = 30;
  config.g_lag_in_frames = 0;
  config.g_threads = 1;
  config.rc_end_usage = AOM_CBR;
  config.rc_target_bitrate = rate;
  config.kf_mode = AOM_KF_DISABLED;
  if (aom_codec_enc_init(&codec, av1, &config, 0)) die("the encoder does not start");
  aom_codec_control(&codec, AOME_SET_CPUUSED, 10);
  aom_codec_control(&codec, AV1E_SET_ENABLE_ORDER_HINT, 0);
  aom_codec_control(&codec, AV1E_SET_ERROR_RESILIENT_MODE, 0);
  aom_codec_control(&codec, AV1E_SET_AQ_MODE, 3);

  aom_svc_params_t svc;
  memset(&svc, 0, sizeof svc);
  svc.number_spatial_layers = 1;
  svc.number_temporal_layers = layers;
  svc.scaling_factor_num[0] = svc.scaling_factor_den[0] = 1;
  for (unsigned layer = 0; layer < layers; layer++) {
    svc.max_quantizers[layer] = 56;
    svc.min_quantizers[layer] = 10;
    svc.framerate_factor[layer] = 1 << (layers - 1 - layer);
    svc.layer_target_bitrate[layer] = rate * (60 + 40 * (layer + 1) / layers) / 100;
  }
  svc.layer_target_bitrate[layers - 1] = rate;
  if (aom_codec_control(&codec, AV1E_SET_SVC_PARAMS, &svc)) die("no layers");

  aom_image_t image;
  if (!aom_img_alloc(&image, AOM_IMG_FMT_I420, width, height, 1)) die("no memory");
  fwrite("DKIF\0\0\x20\0AV01", 1, 12, stdout);
  put(width, 2), put(height, 2), put(30, 4), put(1, 4), put(0, 8);

  static const int pattern[4][4] = {{0}, {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 2, 1, 2}};
  for (long picture = 0;; picture++) {
    for (int plane = 0; plane < 3; plane++) {
      const unsigned w = plane ? (width + 1) / 2 : width, h = plane ? (height + 1) / 2 : height;
      for (unsigned row = 0; row < h; row++)
        if (fread(image.planes[plane] + row * image.stride[plane], 1, w, stdin) != w) {
          aom_codec_destroy(&codec);
          return 0;
        }
    }
    const int is_key = picture % interval == 0;
    const int layer = pattern[layers][(picture % interval) % 4];
    aom_svc_layer_id_t id = {0, layer};
    aom_svc_ref_frame_config_t refs;
    memset(&refs, 0, sizeof refs);
    /* Slot 0 is the base layer's, slot 1 that of the middle one, or of a top one that is chained. LAST is slot 0, or slot 1 where
     * that holds the picture to go on from. libaom writes no slot that is not named as a reference. */
    for (int i = 0; i < 7; i++) refs.ref_idx[i] = i;
    refs.reference[0] = 1;
    if (layer == 0) refs.refresh[0] = 1;
    if (layer == 1) refs.refresh[1] = layers == 3 || is_chained;
    const int goes_on = layer == 2 ? picture % interval % 4 == 3 : layer == 1 && is_chained && picture % interval > 2;
    if (goes_on) refs.ref_idx[0] = 1, refs.ref_idx[1] = 0;
    aom_codec_control(&codec, AV1E_SET_SVC_LAYER_ID, &id);
    aom_codec_control(&codec, AV1E_SET_SVC_REF_FRAME_CONFIG, &refs);
    if (aom_codec_encode(&codec, &image, picture, 1, is_key ? AOM_EFLAG_FORCE_KF : 0)) die(aom_codec_error_detail(&codec));
    aom_codec_iter_t at = NULL;
    const aom_codec_cx_pkt_t *packet;
    while ((packet = aom_codec_get_cx_data(&codec, &at)))
      if (packet->kind == AOM_CODEC_CX_FRAME_PKT) {
        put(packet->data.frame.sz, 4), put(picture, 8);
        fwrite(packet->data.frame.buf, 1, packet->data.frame.sz, stdout);
      }
  }
}

/* NORM (RFC 5740) by its reference implementation, for comparison: sends one file, or receives one.
 *
 *     norm send FILE INTERFACE RECEIVERS    receivers have the numbers 2, 3, ...
 *     norm recv FILE INTERFACE NUMBER       ends once FILE is complete
 *
 * Congestion control is NORM's own. The sender ends once all receivers have acknowledged the file, and prints how long that took,
 * seconds. */
#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

static NormSessionHandle session(NormInstanceHandle instance, const char *interface, NormNodeId number) {
    NormSessionHandle session = NormCreateSession(instance, "230.6.6.1", 6003, number);
    NormSetMulticastInterface(session, interface);
    return session;
}

static int send_file(NormInstanceHandle instance, const char *path, const char *interface, int receivers) {
    NormSessionHandle handle = session(instance, interface, 1);
    NormSetGrttEstimate(handle, 0.001);
    NormSetTxRate(handle, 100e6);
    NormSetCongestionControl(handle, true, true);
    NormSetTxSocketBuffer(handle, 4194304);
    for (int receiver = 0; receiver < receivers; receiver++) NormAddAckingNode(handle, receiver + 2);
    if (!NormStartSender(handle, 1, 16 << 20, 1400, 64, 16, 0)) return 1;
    double started = now();
    NormObjectHandle file = NormFileEnqueue(handle, path, path, 1);
    NormSetWatermark(handle, file, false);
    for (NormEvent event; NormGetNextEvent(instance, &event, true);) {
        if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
        if (NormGetAckingStatus(handle, NORM_NODE_ANY) == NORM_ACK_SUCCESS) break;
        NormSetWatermark(handle, file, true);
    }
    printf("seconds: %.6f\n", now() - started);
    return 0;
}

static int receive_file(NormInstanceHandle instance, const char *path, const char *interface, int number) {
    NormSetCacheDirectory(instance, "/dev/shm");
    NormSessionHandle handle = session(instance, interface, number);
    NormSetDefaultUnicastNack(handle, false);
    if (!NormStartReceiver(handle, 16 << 20)) return 1;
    NormSetRxSocketBuffer(handle, 8388608);
    for (NormEvent event; NormGetNextEvent(instance, &event, true);) {
        if (event.type == NORM_RX_OBJECT_INFO) NormFileRename(event.object, path);
        if (event.type != NORM_RX_OBJECT_COMPLETED) continue;
        NormFileRename(event.object, path);
        printf("complete\n");
        fflush(stdout);
        /* It answers the sender's question whether it has the file. */
        for (;;) NormGetNextEvent(instance, &event, true);
    }
    return 1;
}

int main(int count, char **words) {
    if (count != 5) return 2;
    NormInstanceHandle instance = NormCreateInstance(false);
    int number = atoi(words[4]);
    int is_sender = !strcmp(words[1], "send");
    return is_sender ? send_file(instance, words[2], words[3], number) : receive_file(instance, words[2], words[3], number);
}

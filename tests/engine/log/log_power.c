/* Tests of engine/log over a disk that loses its power: at every call of many workloads, at random again and again, and with calls that fail,
 * are interrupted or do less than asked. After each: what was known to be on the disk is there, what is there is a prefix of what was appended. */
#include <criterion/criterion.h>
#include <errno.h>

#include "log_case.h"

/* Opened once more it must be sound, take records, and have them when the power goes again. */
static void judge(log_case *with, bool power)
{
    with->may_fail = false;
    if (power) {
        disk_reboot(with->disk);
    } else {
        disk_restart(with->disk);
    }
    log_case_work(with, 6);
    uint64_t appended = with->appended;
    disk_reboot(with->disk);
    cr_assert_eq(log_case_open(with), IVM_OK);
    cr_assert_eq(with->found, appended, "it was closed");
    cr_assert_eq(ivm__log_recovery_of(with->log)->bytes_cut, 0);
    cr_assert_str_empty(ivm__log_recovery_of(with->log)->message);
    log_case_deinit(with);
}

static uint64_t calls_of(uint64_t seed, uint32_t steps)
{
    log_case with;
    log_case_init(&with, seed);
    log_case_work(&with, steps);
    uint64_t calls = disk_calls(with.disk);
    log_case_deinit(&with);
    return calls;
}

Test(engine_log_power, it_goes_at_every_call)
{
    uint64_t cuts = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t calls = calls_of(seed, 20);
        for (uint64_t n = 1; n <= calls; n++, cuts++) {
            log_case with;
            log_case_init(&with, seed);
            with.may_fail = true;
            disk_arm(with.disk, n, DISK_CUT, 0);
            log_case_work(&with, 20);
            cr_assert(disk_disarm(with.disk));
            judge(&with, true);
        }
    }
    cr_assert_gt(cuts, 4000);
}

Test(engine_log_power, the_process_ends_at_every_call)
{
    for (uint64_t seed = 100; seed < 120; seed++) {
        uint64_t calls = calls_of(seed, 20);
        for (uint64_t n = 1; n <= calls; n++) {
            log_case with;
            log_case_init(&with, seed);
            with.may_fail = true;
            disk_arm(with.disk, n, DISK_CUT, 0);
            log_case_work(&with, 20);
            cr_assert(disk_disarm(with.disk));
            judge(&with, false);
        }
    }
}

Test(engine_log_power, it_goes_again_and_again)
{
    uint64_t torn = 0, lost = 0;
    for (uint64_t seed = 1000; seed < 4000; seed++) {
        log_case with;
        log_case_init(&with, seed);
        for (uint32_t round = 0; round < 5; round++) {
            with.may_fail = true;
            disk_arm(with.disk, 1 + log_case_draw(&with, 80), DISK_CUT, 0);
            log_case_work(&with, 40);
            (void)disk_disarm(with.disk);
            if (log_case_draw(&with, 4)) {
                disk_reboot(with.disk);
            } else {
                disk_restart(with.disk);
            }
            with.may_fail = false;
            uint64_t appended = with.appended;
            cr_assert_eq(log_case_open(&with), IVM_OK);
            torn += ivm__log_recovery_of(with.log)->bytes_cut > 0;
            lost += with.found < appended;
            log_case_close(&with);
        }
        judge(&with, true);
    }
    cr_assert(torn > 100 && lost > 100, "%lu torn, %lu lost: the disk is too kind", (unsigned long)torn, (unsigned long)lost);
}

static void calls_fail(uint64_t seed, disk_fault fault, int number, bool may_fail)
{
    uint64_t calls = calls_of(seed, 20);
    for (uint64_t n = 1; n <= calls; n++) {
        log_case with;
        log_case_init(&with, seed);
        with.may_fail = may_fail;
        disk_arm(with.disk, n, fault, number);
        log_case_work(&with, 20);
        (void)disk_disarm(with.disk);
        judge(&with, n % 3);
    }
}

Test(engine_log_power, calls_that_fail)
{
    for (uint64_t seed = 200; seed < 220; seed++) {
        calls_fail(seed, DISK_FAIL, EIO, true);
        calls_fail(seed, DISK_FAIL, ENOSPC, true);
    }
}

Test(engine_log_power, calls_that_are_interrupted_or_fall_short_do_no_harm)
{
    for (uint64_t seed = 300; seed < 320; seed++) {
        calls_fail(seed, DISK_FAIL, EINTR, false);
        calls_fail(seed, DISK_SHORT, 0, false);
    }
}

Test(engine_log_power, calls_that_fail_again_and_again)
{
    for (uint64_t seed = 5000; seed < 6500; seed++) {
        log_case with;
        log_case_init(&with, seed);
        with.may_fail = true;
        for (uint32_t round = 0; round < 5; round++) {
            disk_arm(with.disk, 1 + log_case_draw(&with, 60), DISK_FAIL, log_case_draw(&with, 2) ? EIO : ENOSPC);
            log_case_work(&with, 30);
            (void)disk_disarm(with.disk);
            if (log_case_draw(&with, 2)) {
                disk_reboot(with.disk);
            }
        }
        judge(&with, true);
    }
}

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Of each kept recording (kept/, unseen/) which role in the training loop `why` gives the code that the GPU waits for, held against
what these programs do: with each step (or every so many that come within a second), at times that are further apart, once per epoch, or
once. A wrong role fails; what is not said is counted."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", HERE.parents[1] / "build" / "dev"))
LEAST_SHARE = 0.05  # of the time, of findings that are looked at
STEPS, EPOCHS, TIMES = {"throughout"}, {"at_times", "each_epoch"}, {"at_times"}
SOME = STEPS | TIMES  # every so many steps, which may be within a second or not
# Of the labelled programs by the cause that was injected; of the others by their names.
OF_CAUSE = {**dict.fromkeys(("host_graph_building", "input_in_main_process", "pageable_copies", "sync_points", "launch_bound",
                             "gil_contention", "logging_upload", "slow_storage", "straggler", "cpu_oversubscribed",
                             "input_too_few_workers", "one_process_imbalance", "bursty_input"), STEPS),
            **dict.fromkeys(("validation", "epoch_end_host_work", "checkpoint_sync", "duplicate_preprocessing",
                             "epoch_worker_restart"), EPOCHS),
            "interactive_holding_gpu": TIMES}
OF_HEALTHY = {"healthy_short_checkpoint-plain-1": EPOCHS, "healthy_short_validation-plain-1": EPOCHS}
OF_PROGRAM = {**dict.fromkeys(("u01", "u02", "u07", "u11", "u12", "u13", "u16", "u17", "h200_two_workers", "h200_no_workers",
                               "h200_small_kernels", "h200_read_each_step", "h200_neighbours", "h200_large_copies",
                               "h200_producer_thread", "h200_per_sample_loss", "h200_optimizer_offload", "h200_empty_cache",
                               "v_memory_bank", "v_nerf_rays", "v_slow_pipe", "v_rate_limit", "v_small_updates", "v_zip_reader",
                               "v_echo_queue", "v_neighbour", "w_input_subprocess", "w_logging_socket", "w_sync_each_kernel",
                               "w_http_metrics", "w_slow_reader", "w_step_scores", "w_producer_process", "w_packer_beside", "x_neighbor", "x_embed", "x_distill",
                               "x_accumulate", "x_aio_gather", "x_decode", "x_replay", "x_ddp", "x_vec_env", "y_accum_log", "y_aio_queue",
                               "z_aio_service", "z_native_thread", "z_pool_imap", "z_masks_and_generator", "z_fsync_each_step",
                               "z_fetch_each_batch", "z_git_and_fsync", "z_offloaded_adam", "z_numpy_thread", "z_environments",
                               "z_images_in_process", "z_recurrent_cells", "z_pageable_images", "z_throttled_stream",
                               "z_clips_by_parameter", "z_decodes_killed", "z_live_table", "z_posts_each_step", "z_eight_threads",
                               "z_two_parts", "z_actors_and_learner", "z_vision_workers", "z_packing_in_collate", "z_lists_of_tuples",
                               "z_slices_a_list", "z_one_speech_worker", "z_teacher_on_cpu", "z_beam_search", "z_average_and_copy",
                               "z_bzip2_pipe", "z_query_without_index", "z_slow_rank_augments", "z_commits_each_step", "z_ids_in_a_dict",
                               "z_replay_in_python", "z_cold_memory_map", "s_collects_each_step", "s_reads_each_loss", "s_metrics_thread",
                               "s_workers_by_requests", "s_threads_and_workers", "s_micro_batches", "s_tokenising_thread",
                               "s_key_error_in_worker", "s_shared_by_two", "s_both_on_one_gpu", "t_decode_on_busy_cores",
                               "t_pads_in_collate", "t_ranks_on_one_core_each", "t_volumes_made_float",
                               "n_encoder_left_on_the_cpu", "n_gradient_norms", "n_compressed_chunks", "n_exchange_of_micro_batches",
                               "n_points_not_queued", "n_polite_sleep", "n_matcher_on_the_cpu", "n_optimizer_on_the_cpu",
                               "n_host_then_kernels", "n_enqueuer_of_four_threads", "l_collate_in_process", "l_average_and_checkpoints",
                               "l_store_over_tcp", "l_full_pipe_and_deepcopy", "l_pipe_and_deepcopy", "l_top_p", "l_exchange_by_gloo",
                               "l_json_threads", "l_light_samples_again", "l_light_samples_on_one_core",
                               "l_metrics_and_late_imports", "l_micro_batches_on_full_cores", "l_environments_in_one_worker"),
                              STEPS),
              **dict.fromkeys(("u15", "h200_long_ends", "h200_evaluate_and_save", "v_gan_grids", "v_confusion",
                               "v_worker_init", "s_spawned_each_epoch", "s_uneven_shards_gloo", "t_finder_and_file", "t_k_folds", "l_features_per_trial",
                               "n_halves_and_saves", "n_hard_negatives", "n_lock_file_polled"), EPOCHS),
              **dict.fromkeys(("u06", "u19", "h200_three_turns", "v_cache_lock", "w_epoch_end", "w_checkpoint_gzip",
                               "w_checkpoint_fsync", "w_repeat_preprocessing", "w_npz_checkpoint", "w_recompile_loop", "w_env_steps",
                               "w_mixed_epoch", "x_hf_trainer", "x_gan", "x_hp_loop", "x_federated", "x_bleu", "y_held_out", "y_hpo",
                               "z_evaluation_on_cpu", "z_shuffle_buffer", "z_saves_288_mib", "z_group_each_epoch", "z_worker_init",
                               "z_boosts_between", "z_csv_per_trial", "z_evaluates_by_script", "s_trainer_callbacks", "s_statistics_each_epoch"),
                              TIMES),
              **dict.fromkeys(("u08", "u09", "u20", "h200_clip_and_histograms", "h200_rollout_generation", "v_boosting",
                               "v_running_auc", "v_media_upload", "v_event_writer", "v_frequent_save", "h200_rank_zero_metrics",
                               "h200_short_epochs", "x_ema", "z_uneven_shards", "z_windows_of_futures", "z_growing_auc", "z_cached_after_first",
                               "z_smaller_batches", "z_saves_pictures", "z_batches_in_loop", "s_profiler_left_on", "s_one_slow_sample",
                               "s_generation_service", "t_gan_image_grids", "n_tree_search", "n_traced_for_each_length",
                               "n_windows_and_a_pickler", "l_flock_of_another_job", "l_lzma_shards", "l_png_images", "l_clip_and_validation"), SOME),
              "z_compiles_twice": {"once"}}
OF_FUNCTION = {("t_average_of_weights", "save"): EPOCHS,
               ("l_average_and_checkpoints", "save"): SOME, ("l_augments_and_silhouette", "EarlyStopping.should_stop"): EPOCHS,
               ("u14", "Trainer.save_checkpoint"): EPOCHS, ("u14", "Trainer.evaluate"): EPOCHS, ("u14", "Trainer.collate"): STEPS}


def explained(kept):
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder) / "run.hrec.jsonl"
        recording.write_bytes(gzip.decompress(kept.read_bytes()))
        return json.loads(subprocess.run([BUILD / "src" / "cli" / "headroom", "why", "--json", recording], check=True,
                                         stdout=subprocess.PIPE).stdout)


def code_of(finding):
    """The function that has most of the time between the first kernel and the last."""
    claims = [claim for claim in finding["claims"] if claim["where"] and claim["account"] not in ("startup", "teardown", "sync")]
    most = max(claims, key=lambda claim: claim["ns"], default=None)
    return most["where"] if most and 2 * most["ns"] > sum(claim["ns"] for claim in finding["claims"]) else None


def truth_of(kept, code):
    name = kept.name.removesuffix(".jsonl.gz")
    if kept.parent.name == "kept":
        return OF_HEALTHY.get(name, OF_CAUSE.get(json.loads(kept.with_name(f"{name}.json").read_text())["label"]["cause"]))
    return OF_FUNCTION.get((name, code.split(" ")[0]), OF_PROGRAM.get(name))


class Roles(unittest.TestCase):
    def test_none_is_wrong(self):
        counts, wrong = {"right": 0, "wrong": 0, "not said": 0}, []
        for kept in sorted(HERE.glob("*/*.jsonl.gz")):
            for finding in explained(kept)["findings"]:
                code = code_of(finding)
                if not code or finding["share"] < LEAST_SHARE:
                    continue
                recurs = (finding["role"] or {}).get("recurs")
                truth = truth_of(kept, code)
                if os.environ.get("ROLES"):
                    print(kept.name, round(finding["share"], 2), code, finding["role"], truth)
                if not recurs:
                    counts["not said"] += 1
                elif truth and recurs in truth:
                    counts["right"] += 1
                else:
                    counts["wrong"] += 1
                    wrong.append(f"{kept.name}: {code}: {finding['role']}, it is {truth}")
        print(", ".join(f"{name} {count}" for name, count in counts.items()))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    sys.exit(unittest.main())

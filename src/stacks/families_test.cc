// SPDX-License-Identifier: Apache-2.0
#include "stacks/families.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>

namespace headroom::stacks {
namespace {

// Without its caller, file and line, of which are tests of their own.
StackKind kind_of(const std::vector<std::string>& texts, std::vector<FamilyRule> more = {}) {
  std::vector<Frame> frames;
  for (const std::string& text : texts) frames.push_back(frame_of(text));
  StackKind kind = Families(std::move(more)).kind_of(frames);
  kind.caller.clear();
  kind.outside = Family::kNone;
  kind.file.clear();
  kind.line = 0;
  return kind;
}

const std::string kMain = "<module> (/home/u/train.py:1)", kTrain = "train (/home/u/train.py:30)";
const std::string kDist = "/usr/lib/python3/dist-packages/";

TEST(Frame, IsReadFromItsText) {
  EXPECT_EQ(frame_of("Net.forward (/home/u/train.py:31)"), (Frame{"Net.forward", "/home/u/train.py", 31}));
  EXPECT_EQ(frame_of("main (train.py)"), (Frame{"main", "train.py", 0}));
  EXPECT_EQ(frame_of("main"), (Frame{"main", "", 0}));
  EXPECT_EQ(frame_of("f (a (b):x.py:7)"), (Frame{"f (a", "b):x.py", 7}));  // a file may have any name
  EXPECT_EQ(short_name(frame_of("Net.<locals>.step (a.py:1)")), "step");
  EXPECT_EQ(short_name(frame_of("step (a.py:1)")), "step");
  EXPECT_EQ(words(frame_of("Net.forward (/home/u/train.py:31)")), "Net.forward (train.py)");
  EXPECT_EQ(words(frame_of("main")), "main");
  EXPECT_EQ(words(frame_of("tile.<locals>.<genexpr> (a.py:3)")), "tile (a.py)");
  EXPECT_EQ(words(frame_of("f.<locals>.<listcomp>.<locals>.<genexpr> (a.py:3)")), "f (a.py)");
  EXPECT_EQ(words(frame_of("f.<locals>.<lambda> (a.py:3)")), "f.<locals>.<lambda> (a.py)");
  EXPECT_EQ(words(frame_of("f.<locals>.<listcomp>.<listcomp> (a.py:3)")), "f (a.py)");
  EXPECT_EQ(words(frame_of("<genexpr> (a.py:3)")), "<genexpr> (a.py)");
}

TEST(Frame, OfALibraryIsToldFromTheUsers) {
  for (const char* file :
       {"/usr/lib/python3/dist-packages/torch/x.py", "/usr/lib/python3.11/threading.py",
        "/v/lib/python3.12/site-packages/a.py", "<frozen importlib._bootstrap>", "/u/lib64/python3.9/x.py",
        "<__array_function__ internals>", "lib/python3.11/x.py", "site-packages/torch/x.py"})
    EXPECT_TRUE(is_library({.function = "f", .file = file})) << file;
  for (const char* file : {"/home/u/train.py", "/home/u/python3/train.py", "<stdin>", "<string>", "",
                           "/tmp/ipykernel_1/2.py", "/lib/mine/train.py", "mylib/python3/train.py"})
    EXPECT_FALSE(is_library({.function = "f", .file = file})) << file;
}

TEST(Families, OfCodeOfTheUsersKnowWhatItsNameSays) {
  const auto named = [](const std::string& name) { return kind_of({kMain, name + " (/home/u/train.py:9)"}).family; };
  for (const char* name : {"prepare_batch", "load_rows", "batches", "read_data"})
    EXPECT_EQ(named(name), Family::kLoaderFetch) << name;
  for (const char* name : {"tokenize", "Tokenizer.tokenise_all"}) EXPECT_EQ(named(name), Family::kTransform) << name;
  for (const char* name : {"frechet_distance", "calculate_fid", "corpus_bleu", "perplexity"})
    EXPECT_EQ(named(name), Family::kMetrics) << name;
  EXPECT_EQ(named("sample_neighbours"), Family::kGraph);
  for (const char* name : {"detokenize", "train_tokenizer", "run_batches", "reload", "preprocess"})
    EXPECT_EQ(named(name), Family::kNone) << name;
}

TEST(Families, ALaunchAndAWaitForTheDiskAreTold) {
  const StackKind launch = kind_of({kMain, kTrain, "Device.launch (/x/headroom_sim.py:176)"});
  EXPECT_EQ(launch.family, Family::kLaunch);
  EXPECT_EQ(launch.busy, Busy::kLaunches);
  EXPECT_EQ(kind_of({kMain, kTrain, "os.fsync() (/home/u/train.py:30)"}).family, Family::kWrite);
  EXPECT_EQ(kind_of({kMain, "save_checkpoint (/home/u/train.py:9)", "os.fsync() (/home/u/train.py:12)"}).family,
            Family::kCheckpoint);
  EXPECT_EQ(kind_of({kMain, kTrain, "rows.fetchall() (/home/u/train.py:30)"}).family, Family::kLoaderFetch);
}

TEST(Frame, OfALibrarysPathAPartIsTheSameEverywhere) {
  EXPECT_EQ(in_library("/home/u/v/lib/python3.11/site-packages/mpmath/libmp/x.py"),
            "/lib/python3.11/site-packages/mpmath/libmp/x.py");
  EXPECT_EQ(in_library("/opt/site-packages/torch/lib/x.py"), "/site-packages/torch/lib/x.py");
  EXPECT_EQ(in_library("/home/u/train.py"), "");
}

TEST(Families, WhatComesFromAThreadIsWaitedForInAQueueOrAResult) {
  const auto waits = [](const std::string& frame) {
    return kind_of({kMain, kTrain, frame}).for_thread == ForThread::kResult;
  };
  EXPECT_TRUE(waits("Queue.get (/usr/lib/python3.11/queue.py:9)"));
  EXPECT_TRUE(waits("Future.result (/usr/lib/python3.11/concurrent/futures/_base.py:9)"));
  EXPECT_TRUE(waits("IMapIterator.next (/usr/lib/python3.11/multiprocessing/pool.py:9)"));
  EXPECT_EQ(kind_of({kMain, kTrain, "as_completed (/usr/lib/python3.11/concurrent/futures/_base.py:9)",
                     "Event.wait (/usr/lib/python3.11/threading.py:9)"})
                .for_thread,
            ForThread::kResult);
  EXPECT_TRUE(waits("Condition.wait (/usr/lib/python3.11/threading.py:9)"));
  const auto end_of = [](const std::string& frame) { return kind_of({kMain, kTrain, frame}).for_thread; };
  EXPECT_EQ(end_of("Thread.join (/usr/lib/python3.11/threading.py:9)"), ForThread::kEnd);
  EXPECT_EQ(end_of("Event.wait (/usr/lib/python3.11/threading.py:9)"), ForThread::kEnd);
  EXPECT_EQ(end_of("Barrier.wait (/usr/lib/python3.11/threading.py:9)"), ForThread::kNo);
  EXPECT_FALSE(waits("Queue.put (/usr/lib/python3.11/queue.py:9)")) << "what it gives away";
  EXPECT_FALSE(waits("Queue.get (/usr/lib/python3.11/multiprocessing/queues.py:9)")) << "from a process";
}

TEST(Families, ASleepOfTheUsersOwnIsKnown) {
  const auto kind = kind_of({kMain, kTrain, "time.sleep() (/home/u/train.py:31)"});
  EXPECT_EQ(kind.family, Family::kSleep);
  EXPECT_TRUE(kind.own && !kind.waits);
  EXPECT_EQ(kind_of({kMain, "load_sample (/home/u/train.py:3)", "time.sleep() (/home/u/train.py:4)"}).family,
            Family::kLoaderFetch);
  const auto lock = kind_of({kMain, "load_shard (/home/u/train.py:3)", "FileLock.__enter__ (/home/u/train.py:9)",
                             "time.sleep() (/home/u/train.py:10)"});
  EXPECT_EQ(lock.family, Family::kSleep) << "what loads waits for something else";
  EXPECT_EQ(lock.where, "FileLock.__enter__ (train.py)");
}

TEST(Families, CodeWithoutANameIsNoFunction) {
  EXPECT_EQ(kind_of({kMain, kTrain, "(other code)"}), (StackKind{Family::kNone, Busy::kUnknown, "train (train.py)"}));
  EXPECT_EQ(kind_of({"...", "forward (" + kDist + "torch/nn/modules/linear.py:9)"}).where, "forward (linear.py)");
  EXPECT_EQ(kind_of({"(other code)", "f (" + kDist + "numpy/x.py:9)", "(other code)"}).where, "f (x.py)");
  EXPECT_EQ(kind_of({"...", "(other code)"}, {{Family::kLoaderFetch, "", "*"}}), StackKind{});
  std::vector<Frame> frames;
  const std::string called = "validate (/home/u/train.py:50)";
  for (const std::string_view text :
       {std::string_view(kTrain), std::string_view("(other code)"), std::string_view(called)})
    frames.push_back(frame_of(text));
  EXPECT_EQ(Families().kind_of(frames).caller, "train (train.py)");
  EXPECT_EQ(Families().kind_of(frames).line, 50);
  EXPECT_EQ(Families().kind_of(frames).file, "/home/u/train.py");
  const std::string library = "forward (" + kDist + "torch/nn/modules/linear.py:9)";
  EXPECT_EQ(Families().kind_of(std::array{frame_of(library)}).line, 0) << "no code of the user's";
  EXPECT_EQ(Families().kind_of(std::array{frame_of(kTrain), frame_of(library)}).line, 30);
  EXPECT_FALSE(is_unnamed(frame_of("(other code) (t.py:1)"))) << "a function may have any name";
}

TEST(Frame, OfACallIsItsCallers) {
  const std::string text = text_of_call("loss.item", "/home/u/train.py", 41);
  EXPECT_EQ(text, "loss.item() (/home/u/train.py:41)");
  EXPECT_TRUE(is_call(frame_of(text)));
  EXPECT_FALSE(is_call(frame_of(kTrain)));
  EXPECT_EQ(short_name(frame_of(text)), "item()");
}

TEST(Families, WhatALineCallsTellsWhatItIsAtAndNotWhere) {
  const auto at = [](const std::string& call) { return text_of_call(call, "/home/u/train.py", 30); };
  EXPECT_EQ(kind_of({kMain, kTrain, at("loss.item")}),
            (StackKind{Family::kSync, Busy::kWaitsForKernels, "train (train.py)"}));
  EXPECT_EQ(kind_of({kMain, kTrain, at("images.cuda")}),
            (StackKind{Family::kCopy, Busy::kUnknown, "train (train.py)"}));
  EXPECT_EQ(kind_of({kMain, kTrain, at("cv2.imread")}).family, Family::kLoaderFetch);
  EXPECT_EQ(kind_of({kMain, kTrain, at("lock.acquire")}).family, Family::kLock);
  EXPECT_EQ(kind_of({kMain, kTrain, at("gc.collect")}).family, Family::kGarbage);
  EXPECT_EQ(kind_of({kMain, kTrain, at("frame.collect")}).family, Family::kNone) << "of a query, say";
  StackKind own{Family::kNone, Busy::kUnknown, "train (train.py)"};
  own.own = true;
  EXPECT_EQ(kind_of({kMain, kTrain}), own);
  EXPECT_EQ(kind_of({kMain, kTrain, at("weights.add_")}), own) << "as without it";
  own.plain = true;
  EXPECT_EQ(kind_of({kMain, kTrain, at("np.sort")}), own);
  const std::string fetch = "_MapDatasetFetcher.fetch (" + kDist + "torch/utils/data/_utils/fetch.py:47)";
  EXPECT_EQ(
      kind_of({kMain, kTrain, fetch, "load (/home/u/data.py:9)", text_of_call("zlib.crc32", "/home/u/data.py", 9)}),
      (StackKind{Family::kLoaderFetch, Busy::kIdle, "load (data.py)"}));
}

TEST(Families, AnEventLoopThatHasNothingToRunIsKnown) {
  const std::string once = "BaseEventLoop._run_once (/usr/lib/python3.11/asyncio/base_events.py:1890)",
                    select = "EpollSelector.select (/usr/lib/python3.11/selectors.py:468)";
  EXPECT_TRUE(kind_of({kMain, kTrain, once, select}).in_loop);
  EXPECT_FALSE(kind_of({kMain, kTrain, once}).in_loop) << "it runs one";
  EXPECT_FALSE(kind_of({kMain, kTrain, select}).in_loop) << "the user's own";
}

TEST(Families, AnArchiveOfArraysIsAState) {
  const std::string zip = "ZipFile.write (/usr/lib/python3.11/zipfile.py:9)";
  const auto family = [&](const std::string& called) { return kind_of({kMain, kTrain, called, zip}).family; };
  EXPECT_EQ(family("_savez (" + kDist + "numpy/lib/npyio.py:9)"), Family::kCheckpoint);
  EXPECT_EQ(family("dump (" + kDist + "joblib/numpy_pickle.py:9)"), Family::kCheckpoint);
  EXPECT_EQ(family("save (" + kDist + "numpy/lib/npyio.py:9)"), Family::kNone) << "one array: a result, or data";
}

TEST(Families, CodeThatUsesNoGpuIsPlain) {
  const auto at = [](const std::string& call) { return text_of_call(call, "/home/u/train.py", 30); };
  const auto plain = [](const std::string& frame) { return kind_of({kMain, kTrain, frame}).plain; };
  for (const char* const call : {"json.dumps", "db.execute", "word.findall", "sorted", "random.gauss"})
    EXPECT_TRUE(plain(at(call))) << call;
  for (const char* const call : {"sum", "x.split", "torch.where", "model", "x.json.mul"})
    EXPECT_FALSE(plain(at(call))) << call;
  EXPECT_TRUE(plain("JSONEncoder.iterencode (/usr/lib/python3.11/json/encoder.py:9)"));
  EXPECT_TRUE(plain("where (" + kDist + "numpy/core/multiarray.py:9)"));
  EXPECT_TRUE(kind_of({kMain, kTrain, "searchsorted (<__array_function__ internals>:177)",
                       "searchsorted (" + kDist + "numpy/core/fromnumeric.py:9)"})
                  .plain);
  const std::string metrics = "roc_auc_score (" + kDist + "sklearn/metrics/_ranking.py:9)";
  EXPECT_EQ(kind_of({kMain, kTrain, metrics}).family, Family::kMetrics);
  EXPECT_TRUE(plain(metrics)) << "of the packages with metrics one that uses none";
  EXPECT_FALSE(plain("compute (" + kDist + "torchmetrics/metric.py:9)"));
  EXPECT_FALSE(plain("relu (" + kDist + "mylib/functional.py:9)"));
  EXPECT_FALSE(
      kind_of({kMain, kTrain, "f (" + kDist + "mylib/x.py:9)", "deepcopy (/usr/lib/python3.11/copy.py:9)"}).plain)
      << "what a package does in Python's library may be of a GPU";
  EXPECT_FALSE(kind_of({kMain, kTrain}).plain);
  EXPECT_FALSE(kind_of({kMain, kTrain, "(other code)"}).plain);
}

TEST(Families, NameTheLoaderAndTheUsersFunctionInIt) {
  const std::string next = "_SingleProcessDataLoaderIter._next_data (" + kDist + "torch/utils/data/dataloader.py:669)";
  const std::string fetch = "_MapDatasetFetcher.fetch (" + kDist + "torch/utils/data/_utils/fetch.py:47)";
  const auto kind = kind_of({kMain, kTrain, next, fetch, "Images.__getitem__ (/home/u/data.py:9)",
                             "decode (/home/u/data.py:20)", "open (" + kDist + "PIL/Image.py:3)"});
  EXPECT_EQ(kind, (StackKind{Family::kLoaderFetch, Busy::kIdle, "decode (data.py)"}));
  EXPECT_EQ(
      kind_of({kMain, kTrain, next, fetch, "default_collate (" + kDist + "torch/utils/data/_utils/collate.py:84)"})
          .family,
      Family::kCollate);
}

TEST(Families, WhatAForkedWorkerInheritedIsNotItsOwn) {
  const std::string lib = "/usr/lib/python3.11/multiprocessing/";
  const std::vector<std::string> forked{kMain,
                                        kTrain,
                                        "DataLoader.__iter__ (" + kDist + "torch/utils/data/dataloader.py:1)",
                                        "BaseProcess.start (" + lib + "process.py:1)",
                                        "Popen._launch (" + lib + "popen_fork.py:1)",
                                        "BaseProcess._bootstrap (" + lib + "process.py:2)",
                                        "_worker_loop (" + kDist + "torch/utils/data/_utils/worker.py:202)"};
  const auto in_worker = [&](const std::vector<std::string>& more) {
    std::vector<std::string> stack = forked;
    stack.insert(stack.end(), more.begin(), more.end());
    return kind_of(stack);
  };
  const auto item =
      in_worker({"fetch (" + kDist + "torch/utils/data/_utils/fetch.py:1)", "Images.__getitem__ (/home/u/data.py:9)"});
  EXPECT_EQ(item, (StackKind{Family::kLoaderFetch, Busy::kIdle, "Images.__getitem__ (data.py)"}));
  EXPECT_TRUE(in_worker({"Queue.get (" + lib + "queues.py:9)", "select (/usr/lib/python3.11/selectors.py:4)"}).waits);
  EXPECT_EQ(in_worker({"default_collate (" + kDist + "torch/utils/data/_utils/collate.py:84)"}).where,
            "default_collate (collate.py)");
}

TEST(Families, OfBoostingTheRoundsTheDataAndTheScoresAreToldApart) {
  const std::string xgboost = kDist + "xgboost/", lightgbm = kDist + "lightgbm/";
  const std::string train = "train (" + xgboost + "training.py:50)";
  EXPECT_EQ(kind_of({kMain, train, "Booster.update (" + xgboost + "core.py:2000)"}).busy, Busy::kLaunches);
  EXPECT_EQ(kind_of({kMain, train, "Booster.eval_set (" + xgboost + "core.py:2100)"}).family, Family::kEvaluation);
  EXPECT_EQ(
      kind_of({kMain, "DMatrix.__init__ (" + xgboost + "core.py:800)", "_from_numpy (" + xgboost + "data.py:170)"})
          .family,
      Family::kDatasetIndex);
  EXPECT_EQ(kind_of({kMain, "Booster.__inner_eval (" + lightgbm + "basic.py:4000)"}).family, Family::kEvaluation);
  EXPECT_EQ(kind_of({kMain, "Dataset.construct (" + lightgbm + "basic.py:2000)"}).family, Family::kDatasetIndex);
  EXPECT_EQ(kind_of({kMain, "Booster.save_model (" + lightgbm + "basic.py:3000)"}).family, Family::kCheckpoint);
}

TEST(Families, AWaitForWorkersIsNoLockOfTheUser) {
  const std::string loader =
      "_MultiProcessingDataLoaderIter._try_get_data (" + kDist + "torch/utils/data/dataloader.py:1)";
  const auto kind = kind_of({kMain, kTrain, loader, "Queue.get (/usr/lib/python3.11/multiprocessing/queues.py:9)",
                             "select (/usr/lib/python3.11/selectors.py:4)"});
  EXPECT_EQ(kind.family, Family::kLoaderWait);
  EXPECT_EQ(kind.where, "waiting for loader workers");
  EXPECT_EQ(kind_of({kMain, kTrain, "Barrier.wait (/usr/lib/python3.11/threading.py:9)"}),
            (StackKind{Family::kLock, Busy::kIdle, "train (train.py)", true}));
}

TEST(Families, AThreadOfAPoolWaitsUntilItsLoopCallsSomething) {
  const std::string loop = "_worker (/usr/lib/python3.11/concurrent/futures/thread.py:60)";
  EXPECT_EQ(kind_of({loop}).family, Family::kLock);
  EXPECT_EQ(kind_of({"Pool._handle_tasks (/usr/lib/python3.11/multiprocessing/pool.py:1)"}).family, Family::kLock);
  EXPECT_EQ(kind_of({loop, "crunch (/home/u/a.py:1)"}),
            (StackKind{Family::kNone, Busy::kUnknown, "crunch (a.py)", false, Family::kNone, true}));
  EXPECT_EQ(kind_of({kMain, "Future.result (/usr/lib/python3.11/concurrent/futures/_base.py:1)",
                     "Condition.wait (/usr/lib/python3.11/threading.py:1)"})
                .family,
            Family::kLock);
}

TEST(Families, AThreadThatServesOthersWaitsForThem) {
  const std::string run = "Thread.run (/usr/lib/python3.11/threading.py:964)";
  const std::string connection = "/usr/lib/python3.11/multiprocessing/connection.py:454)";
  EXPECT_TRUE(kind_of({run, "_ResourceSharer._serve (/usr/lib/python3.11/multiprocessing/resource_sharer.py:133)",
                       "Listener.accept (" + connection, "SocketListener.accept (" + connection,
                       "socket.accept (/usr/lib/python3.11/socket.py:287)"})
                  .waits);
  EXPECT_TRUE(kind_of({run, "Queue._feed (/usr/lib/python3.11/multiprocessing/queues.py:211)"}).waits);
  EXPECT_FALSE(kind_of({run, "Queue._feed (/usr/lib/python3.11/multiprocessing/queues.py:211)",
                        "ForkingPickler.dumps (/usr/lib/python3.11/multiprocessing/reduction.py:48)"})
                   .waits);
}

TEST(Families, ALoaderThatWaitsForAThreadOfItsOwnWaits) {
  EXPECT_TRUE(
      kind_of({kMain, "next_batch (/home/u/a.py:1)", "Condition.wait (/usr/lib/python3.11/threading.py:1)"}).waits);
  EXPECT_FALSE(kind_of({kMain, "next_batch (/home/u/a.py:1)"}).waits);
}

TEST(Families, TheInnermostPartOfAStepTellsWhetherKernelsRun) {
  const std::string forward = "Module._call_impl (" + kDist + "torch/nn/modules/module.py:1)";
  EXPECT_EQ(kind_of({kMain, kTrain, forward, "Net.forward (/home/u/net.py:1)"}),
            (StackKind{Family::kForward, Busy::kLaunches, "Net.forward (net.py)"}));
  const auto evaluation = kind_of({kMain, "validate (/home/u/train.py:5)", forward, "Net.forward (/home/u/net.py:1)"});
  EXPECT_EQ(evaluation.family, Family::kEvaluation);
  EXPECT_EQ(evaluation.busy, Busy::kLaunches);
  EXPECT_EQ(kind_of({kMain, kTrain, "synchronize (" + kDist + "torch/cuda/__init__.py:1)"}).busy,
            Busy::kWaitsForKernels);
}

TEST(Families, AnImportIsNamedByWhatWasAskedFor) {
  const std::string find = "_find_and_load (<frozen importlib._bootstrap>:1)";
  const auto kind =
      kind_of({kMain, find, "_call_with_frames_removed (<frozen importlib._bootstrap>:2)",
               "<module> (" + kDist + "torch/__init__.py:1)", find, "<module> (" + kDist + "numpy/__init__.py:1)"});
  EXPECT_EQ(kind.family, Family::kImport);
  EXPECT_EQ(kind.where, "import torch");
  EXPECT_EQ(kind_of({kMain, find}).where, "imports");
  EXPECT_EQ(kind_of({kMain, find, "<module> (/usr/lib/python3.11/json/__init__.py:1)"}).where, "import json");
}

TEST(Families, WhatALibraryRunsWhileItIsImportedIsImport) {
  const std::string find = "_find_and_load (<frozen importlib._bootstrap>:1)";
  const std::string module = "Module (" + kDist + "torch/nn/modules/module.py:1)";
  const auto kind = kind_of({kMain, kTrain, find, "<module> (" + kDist + "torch/__init__.py:1)", find, module});
  EXPECT_EQ(kind, (StackKind{Family::kImport, Busy::kIdle, "import torch", false, Family::kImport}));
  EXPECT_EQ(kind_of({kMain, find, "<module> (/home/u/setup.py:1)", "Net.forward (/home/u/net.py:1)"}).family,
            Family::kForward);
}

TEST(Families, CompilersAndCopiesAreKnownByTheirLibraries) {
  for (const char* frame : {"_compile_for_args (/x/site-packages/numba/core/dispatcher.py:1)",
                            "compile_using_nvrtc (/x/site-packages/cupy/cuda/compiler.py:1)",
                            "script (/x/site-packages/torch/jit/_script.py:1)",
                            "jit_load (/x/site-packages/deepspeed/ops/op_builder/builder.py:1)"})
    EXPECT_EQ(kind_of({kMain, "prepare (/u/train.py:1)", frame}).family, Family::kCompile) << frame;
  for (const char* frame : {"send_to_device (/x/site-packages/accelerate/utils/operations.py:1)",
                            "host_to_device (/x/site-packages/numba/cuda/cudadrv/driver.py:1)"})
    EXPECT_EQ(kind_of({kMain, kTrain, frame}).family, Family::kCopy) << frame;
}

TEST(Families, WhatWrapsEveryCallOfANewPyTorchCompilesNothing) {
  const std::string wraps = "DisableContext.__call__.<locals>._fn (" + kDist + "torch/_dynamo/eval_frame.py:1240)";
  EXPECT_EQ(kind_of({kMain, kTrain, "_disable_dynamo.<locals>.inner (" + kDist + "torch/_compile.py:42)", wraps,
                     "Optimizer.zero_grad (" + kDist + "torch/optim/optimizer.py:1027)"})
                .family,
            Family::kOptimizer);
  EXPECT_EQ(kind_of({kMain, kTrain, wraps, "_compile (" + kDist + "torch/_dynamo/convert_frame.py:700)"}).family,
            Family::kCompile);
}

TEST(Families, ATransformerTransformsNoInputAndItsActivationsAreNoCheckpoints) {
  const std::string forward = "Module._call_impl (" + kDist + "torch/nn/modules/module.py:1)";
  for (const char* name : {"run_transformer (/u/a.py:1)", "checkpointed_forward (/u/a.py:1)"})
    EXPECT_EQ(kind_of({kMain, name, forward}).family, Family::kForward) << name;
  EXPECT_EQ(kind_of({kMain, "transform (/u/a.py:1)"}).family, Family::kTransform);
}

TEST(Families, GivingMemoryBackIsTheAllocatorsAndHistogramsAreLogging) {
  EXPECT_EQ(kind_of({kMain, kTrain, "empty_cache (" + kDist + "torch/cuda/memory.py:212)"}).family, Family::kAllocator);
  EXPECT_EQ(kind_of({kMain, kTrain, "log_histograms (/u/a.py:3)"}).family, Family::kLogging);
}

TEST(Families, LibrariesThatReadAndNamesOfWhatIsSavedAreKnown) {
  const auto family = [](const std::string& frame) { return kind_of({kMain, kTrain, frame}).family; };
  const std::string std_lib = "/usr/lib/python3.11/";
  EXPECT_EQ(family("Dataset.__getitem__ (" + kDist + "h5py/_hl/dataset.py:9)"), Family::kLoaderFetch);
  EXPECT_EQ(family("GzipFile.read (" + std_lib + "gzip.py:9)"), Family::kLoaderFetch);
  EXPECT_EQ(family("GzipFile.write (" + std_lib + "gzip.py:9)"), Family::kNone) << "which may be a checkpoint";
  EXPECT_EQ(family("Image.resize (" + kDist + "PIL/Image.py:9)"), Family::kTransform);
  EXPECT_EQ(family("Image.save (" + kDist + "PIL/Image.py:9)"), Family::kNone);
  EXPECT_EQ(family("Tok.encode (" + kDist + "transformers/models/bert/tokenization_bert.py:9)"), Family::kTransform);
  EXPECT_EQ(family("post (" + kDist + "requests/api.py:9)"), Family::kLogging);
  EXPECT_EQ(family("get (" + kDist + "requests/api.py:9)"), Family::kNone) << "it reads, nobody knows what";
  EXPECT_EQ(family("save_ckpt (/home/u/train.py:9)"), Family::kCheckpoint);
  EXPECT_EQ(family("load_ckpt (/home/u/train.py:9)"), Family::kNone);
  EXPECT_EQ(family("log_prob (/home/u/train.py:9)"), Family::kNone);
}

TEST(Families, AForkedWorkerIsNotAtWhatItsParentWas) {
  const std::string iter = "_MultiProcessingDataLoaderIter.__init__ (" + kDist + "torch/utils/data/dataloader.py:1)";
  const std::string launch = "Popen._launch (/usr/lib/python3.11/multiprocessing/popen_fork.py:62)";
  const std::string bootstrap = "BaseProcess._bootstrap (/usr/lib/python3.11/multiprocessing/process.py:290)";
  const std::string loop = "_worker_loop (" + kDist + "torch/utils/data/_utils/worker.py:202)";
  const std::vector<std::string> begin{kMain, "validate (/home/u/train.py:5)", iter, launch, bootstrap, loop};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), begin.begin(), begin.end());
    return kind_of(more);
  };
  const std::string fetch = "_MapDatasetFetcher.fetch (" + kDist + "torch/utils/data/_utils/fetch.py:47)";
  EXPECT_EQ(with({fetch, "Images.decode (/home/u/data.py:20)"}),
            (StackKind{Family::kLoaderFetch, Busy::kIdle, "Images.decode (data.py)"}));
  EXPECT_EQ(with({fetch, "default_collate (" + kDist + "torch/utils/data/_utils/collate.py:84)"}).where,
            "default_collate (collate.py)");
  EXPECT_EQ(with({"open_shards (/home/u/data.py:40)"}),
            (StackKind{Family::kNone, Busy::kUnknown, "open_shards (data.py)", false, Family::kNone, true}));
  EXPECT_TRUE(with({"Queue.get (/usr/lib/python3.11/multiprocessing/queues.py:9)"}).waits);
}

TEST(Families, ANameThatIsAboutMoreIsNoFamily) {
  for (const char* name : {"train_and_validate", "load_checkpoint", "fit_with_checkpoints", "resume_from_checkpoint"})
    EXPECT_EQ(kind_of({kMain, fmt::format("{} (/home/u/train.py:5)", name)}).family, Family::kNone) << name;
  EXPECT_EQ(kind_of({kMain, "write_checkpoint (/home/u/train.py:5)"}).family, Family::kCheckpoint);
  EXPECT_EQ(kind_of({kMain, "run_validation (/home/u/train.py:5)"}).family, Family::kEvaluation);
  EXPECT_NE(kind_of({kMain, "evaluate_each (/home/u/train.py:5)", "train_step (/home/u/train.py:9)"}).family,
            Family::kEvaluation)
      << "what calls a step of training does not only evaluate";
}

TEST(Families, CodeThatNobodyKnowsKeepsItsName) {
  EXPECT_EQ(kind_of({kMain, "fit (" + kDist + "unheard_of/a.py:1)"}),
            (StackKind{Family::kNone, Busy::kUnknown, "<module> (train.py)"}));
  EXPECT_EQ(kind_of({"run (" + kDist + "unheard_of/a.py:1)"}).where, "run (a.py)");
  EXPECT_EQ(kind_of({}), StackKind{});
}

TEST(Families, RulesOfTheUserGoFirst) {
  const std::vector<std::string> stack{kMain, "Sim.advance (/home/u/sim.py:1)"};
  EXPECT_EQ(kind_of(stack).family, Family::kNone);
  EXPECT_EQ(kind_of(stack, {{Family::kLoaderFetch, "sim.py", "advance"}}).family, Family::kLoaderFetch);
  EXPECT_EQ(kind_of(stack, {{Family::kGraph, "", "*vanc*"}}).family, Family::kGraph);
  EXPECT_EQ(kind_of(stack, {{Family::kGraph, "", "ad*"}}).family, Family::kGraph);
  EXPECT_EQ(kind_of(stack, {{Family::kGraph, "", "*ce"}}).family, Family::kGraph);
  EXPECT_EQ(kind_of(stack, {{Family::kGraph, "", "advanc"}}).family, Family::kNone);
}

TEST(Families, AreAllReachedAndNamedOnce) {
  std::set<Family> reached;
  for (const FamilyRule& rule : built_in_rules()) {
    EXPECT_FALSE(rule.file.empty() && (rule.function.empty() || rule.function == "*")) << "fits everything";
    reached.insert(rule.family);
  }
  std::set<std::string_view> names;
  for (const FamilyInfo& family : all_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.id == Family::kNone || reached.contains(family.id)) << family.name;
  }
}

TEST(Families, InTheUsersOwnCodeNoWorkerFeedsIt) {
  EXPECT_TRUE(kind_of({kMain, kTrain}).own);
  EXPECT_FALSE(kind_of({kMain, kTrain, "fit (" + kDist + "unheard_of/a.py:1)"}).own) << "it may load data";
  EXPECT_FALSE(kind_of({kMain, kTrain, "Queue.get (/usr/lib/python3.11/queue.py:9)"}).own) << "it may be a loader's";
  const std::string run = "run (/usr/lib/python3.11/subprocess.py:506)",
                    wait = "Popen.wait (/usr/lib/python3.11/subprocess.py:1)";
  EXPECT_TRUE(kind_of({kMain, kTrain, run, wait}).own);
}

TEST(Families, ExchangesBetweenProcessesAreTold) {
  const std::string reduce = "all_reduce (" + kDist + "torch/distributed/distributed_c10d.py:1)",
                    recv = "Connection.recv (/usr/lib/python3.11/multiprocessing/connection.py:1)";
  EXPECT_EQ(kind_of({kMain, kTrain, reduce}).family, Family::kPeers);
  EXPECT_EQ(kind_of({kMain, kTrain, "barrier (/home/u/train.py:5)"}).family, Family::kPeers);
  EXPECT_NE(kind_of({kMain, kTrain, "broadcast_mask (/home/u/train.py:5)"}).family, Family::kPeers);
  EXPECT_NE(kind_of({kMain, "barrier (/home/u/train.py:5)", kTrain}).family, Family::kPeers) << "it does more";
  const StackKind receives = kind_of({kMain, kTrain, recv});
  EXPECT_TRUE(receives.of_processes);
  EXPECT_TRUE(receives.waits);
  EXPECT_FALSE(kind_of({kMain, kTrain, "Queue.get (/usr/lib/python3.11/queue.py:9)"}).of_processes) << "of threads";
  EXPECT_FALSE(kind_of({kMain, kTrain, "all_reduce (/home/u/train.py:5)", recv}).waits) << "it says for what";
}

TEST(Families, WhoJoinsAProcessWaitsForItsChild) {
  const std::string join = "Popen.wait (/usr/lib/python3.11/multiprocessing/popen_fork.py:1)";
  EXPECT_TRUE(kind_of({kMain, kTrain, join}).for_child);
  EXPECT_TRUE(kind_of({kMain, kTrain, "Popen.wait (/usr/lib/python3.11/subprocess.py:1)"}).for_child);
  EXPECT_FALSE(kind_of({kMain, kTrain, "Condition.wait (/usr/lib/python3.11/threading.py:1)"}).for_child);
}

TEST(Frame, TakesAnyText) {
  std::mt19937 random(1);
  const std::string letters = "ab (:)/.<>*0123456789";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = random() % 20; n > 0; --n) text += letters[random() % letters.size()];
    const Frame frame = frame_of(text);
    EXPECT_LE(frame.function.size() + frame.file.size(), text.size()) << text;
    EXPECT_TRUE(text.starts_with(frame.function)) << text;
  }
}

TEST(Families, AFunctionOfTheUsersHasACallerAndWhatThatIsAPartOf) {
  const std::vector<Frame> frames{frame_of("<module> (/u/a.py:1)"), frame_of("evaluate (/u/a.py:7)"),
                                  frame_of("map (/x/site-packages/some/tools.py:3)"), frame_of("burn (/u/tr.py:8)"),
                                  frame_of("burn (/u/tr.py:8)")};
  const StackKind kind = Families().kind_of(frames);
  EXPECT_EQ(kind.where, "burn (tr.py)");
  EXPECT_EQ(kind.caller, "evaluate (a.py)") << "it called itself, through a library";
  EXPECT_EQ(kind.outside, Family::kEvaluation);
  const StackKind outermost = Families().kind_of(std::span(frames).first(1));
  EXPECT_EQ(outermost.caller, "");
  EXPECT_EQ(outermost.outside, Family::kNone);
}

}  // namespace
}  // namespace headroom::stacks

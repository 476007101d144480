// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyze/gpu_works.h"
#include "import/import.h"
#include "import/kineto_frames.h"
#include "import/trace.h"
#include "model/entities.h"
#include "model/losses.h"

namespace headroom {
namespace {

std::string event(std::string_view category, std::string_view name, std::string_view at, std::string_view length,
                  std::string_view args, int pid = 100, int tid = 100) {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     category, name, pid, tid, at, length, args);
}

std::string kernel(std::string_view at, std::string_view length, int stream = 7, int correlation = 0, int device = 0) {
  return event("kernel", "k", at, length,
               fmt::format(R"("device":{},"stream":{},"correlation":{})", device, stream, correlation), device, stream);
}

std::string launch(std::string_view at, std::string_view length, int correlation) {
  return event("cuda_runtime", "cudaLaunchKernel", at, length, fmt::format(R"("correlation":{})", correlation));
}

std::string trace(const std::vector<std::string>& events, std::string_view more = "") {
  std::string text = R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"GPU of a test","totalGlobalMem":1000,)"
                     R"("computeMajor":8,"computeMinor":6}],"distributedInfo":{"rank":3},"traceEvents":[)";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "\n") + events[i];
  return text + "]" + std::string(more) + "}";
}

Result<Recording> read(const std::string& text) {
  ByteStream bytes = ByteStream::of(text);
  return read_kineto("trace.json", bytes);
}

std::vector<WorkStretch> stretches(const Recording& recording) {
  return work_stretches(recording, recording.all(SourceKind::kGpu).front());
}

Nanos busy(const Recording& recording) {
  Nanos sum = 0;
  for (const WorkStretch& stretch : stretches(recording))
    if (stretch.busy()) sum += stretch.end - stretch.begin;
  return sum;
}

TEST(Kineto, StreamsAreMergedToUnionsAndKeepTheirNanoseconds) {
  // 2 us and 3 us that overlap by 1.5 us, then 1.001 us, at a time of today: a double would lose the last digits.
  const auto r = read(trace({kernel("1712195495505583.001", "2.000", 7), kernel("1712195495505583.501", "3.000", 20),
                             kernel("1712195495505590.000", "1.001", 7)}));
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(busy(*r), 3'500 + 1'001);
  EXPECT_EQ(r->meta.start, 1'712'195'495'505'583'001);
  EXPECT_EQ(r->meta.end, 1'712'195'495'505'591'001);
  EXPECT_EQ(r->meta.origin, "import:kineto");
  EXPECT_EQ(r->meta.tiers, "C");
  std::int64_t kernels = 0;
  for (const WorkStretch& stretch : stretches(*r)) kernels += stretch.kernels;
  EXPECT_EQ(kernels, 3);
}

TEST(Kineto, BaseTimeMovesTheTraceToItsPlaceOnTheCalendar) {
  const auto r = read(trace({kernel("10", "5")}, R"(,"baseTimeNanoseconds":1700000000000000000)"));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.start, 1'700'000'000'000'010'000);
  EXPECT_EQ(r->meta.start_realtime, r->meta.start);
}

TEST(Kineto, FactsOfTheGpuAreItsOwnAndOnlyGpusWithWorkAreInIt) {
  const auto r = read(trace({kernel("10", "5")}));
  ASSERT_TRUE(r);
  ASSERT_EQ(r->all(SourceKind::kGpu).size(), 1U);
  const Device device = device_of(r->sources[0]);
  EXPECT_EQ(device.name, "GPU of a test");
  EXPECT_EQ(device.memory_total_bytes, 1000);
  EXPECT_EQ(device.compute_capability, "8.6");
  EXPECT_EQ(r->meta.extra.at("rank"), "3");
}

TEST(Kineto, WorkThatHasBeenLaunchedAndHasNotBegunIsQueued) {
  const auto r = read(trace({launch("10", "4", 1), kernel("20", "5", 7, 1)}));
  ASSERT_TRUE(r);
  const auto all = stretches(*r);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].works, 0U);
  EXPECT_TRUE(all[1].has(GpuWork::kQueued));
  EXPECT_EQ(all[1].end - all[1].begin, 6'000) << "from the end of the call to the begin of the kernel";
  EXPECT_TRUE(all[2].busy());
}

TEST(Kineto, CopiesAreNoKernelsAndTellWhatMemoryTheyTouch) {
  const auto copy = [](std::string_view at, std::string_view name) {
    return event("gpu_memcpy", name, at, "1", R"("device":0,"stream":7)", 0, 7);
  };
  const auto r =
      read(trace({kernel("0", "1"), copy("2", "Memcpy HtoD (Pageable -> Device)"),
                  copy("4", "Memcpy HtoD (Pinned -> Device)"), copy("6", "Memcpy DtoH (Device -> Pageable)"),
                  copy("8", "Memcpy DtoD (Device -> Device)"), copy("10", "Memcpy PtoP (Device -> Device)")}));
  ASSERT_TRUE(r);
  EXPECT_EQ(busy(*r), 1'000);
  std::vector<GpuWork> seen;
  for (const WorkStretch& stretch : stretches(*r))
    for (const GpuWorkInfo& work : kGpuWorks)
      if (stretch.has(work.id)) seen.push_back(work.id);
  EXPECT_EQ(seen, (std::vector{GpuWork::kKernel, GpuWork::kPageableToDevice, GpuWork::kCopyToDevice,
                               GpuWork::kPageableToHost, GpuWork::kCopyOnDevice, GpuWork::kCopyToPeer}));
  EXPECT_FALSE(r->meta.extra.contains("host_copies"));
  const auto pinned =
      read(trace({kernel("0", "1"), copy("2", "Memcpy DtoH (Device -> Pinned)"),
                  copy("4", "Memcpy HtoD (Pinned -> Device)"), copy("6", "Memcpy DtoD (Device -> Device)")}));
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned->meta.extra.at("host_copies"), "pinned");
}

TEST(Kineto, ATextThatIsOneValueIsNoTrace) {
  for (const char* text : {"\"traceEvents\"", "7", "1.5", "true", "null", "[1]", "{}"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(Kineto, ThreadsMayBeNumbersInText) {
  std::string op = event("Operator", "aten::linear", "0", "40", "");
  op.replace(op.find("\"tid\":100"), 9, "\"tid\":\"100\"");
  const auto r = read(trace({op, kernel("50", "5")}));
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->find(SourceKind::kCallThread, "100/0/100"));
  EXPECT_FALSE(r->meta.extra.contains("operators"));
}

TEST(Kineto, TheWordsOfEarlierVersionsMeanTheSame) {
  const auto r =
      read(trace({event("Kernel", "k", "0", "10", R"("device":0,"stream":7)", 0, 7),
                  event("Memcpy", "Memcpy HtoD (Pageable -> Device)", "20", "5", R"("device":0,"stream":7)", 0, 7),
                  event("Operator", "aten::add", "0", "5", "")}));
  ASSERT_TRUE(r);
  EXPECT_EQ(busy(*r), 10'000);
  EXPECT_TRUE(r->find(SourceKind::kCallThread, "100/0/100"));
}

// Of the only thread: since the begin, in us, and what it was in.
std::vector<std::string> rows_of_thread(const Recording& r) {
  std::vector<std::string> rows;
  const auto thread = r.find(SourceKind::kCallThread, "100/0/100");
  if (!thread) return rows;
  for (const ListRow& row : r.tracks[static_cast<std::size_t>(*thread)].lists) {
    std::string names;
    for (const TextId text : r.lists[row.list]) names += r.texts[text] + ";";
    rows.push_back(fmt::format("{} {}", (row.at - r.meta.start) / 1000, names));
  }
  return rows;
}

TEST(Kineto, AThreadKeepsItsOutermostOperatorAndTheCallsThatTell) {
  const auto r =
      read(trace({event("cpu_op", "aten::linear", "10", "100", ""), event("cpu_op", "aten::addmm", "20", "50", ""),
                  launch("30", "5", 1), event("cuda_runtime", "cudaEventQuery", "50", "1", ""),
                  event("cuda_runtime", "cudaDeviceSynchronize", "120", "30", ""), kernel("40", "5", 7, 1)}));
  ASSERT_TRUE(r);
  EXPECT_EQ(rows_of_thread(*r),
            (std::vector<std::string>{"0 aten::linear;", "20 aten::linear;cudaLaunchKernel;", "25 aten::linear;",
                                      "100 ", "110 cudaDeviceSynchronize;", "140 "}));
}

TEST(Kineto, PythonFunctionsTellWhatAThreadIsInBetweenOperators) {
  const auto python = [](std::string_view name, std::string_view at, std::string_view length) {
    return event("python_function", name, at, length, R"("Python id":1)");
  };
  const auto r = read(trace({python("train.py(1): <module>", "0", "1000"), python("train.py(12): step", "20", "70"),
                             python("<built-in method item of Tensor object at 0x7f>", "22", "5"),
                             python("nn.Module: Linear_0", "22", "5"), event("cpu_op", "aten::mm", "30", "20", ""),
                             python("torch/nn/functional.py(7): linear", "35", "5"), launch("60", "5", 1),
                             kernel("70", "30", 7, 1), event("cpu_op", "aten::add", "10", "2", "")}));
  ASSERT_TRUE(r);
  EXPECT_EQ((r->meta.end - r->meta.start) / 1000, 90) << "from the first operator to the end of the last kernel";
  const std::string module = "<module> (train.py:1);", step = "step (train.py:12);";
  EXPECT_EQ(rows_of_thread(*r), (std::vector<std::string>{"0 aten::add;", "2 " + module, "10 " + module + step,
                                                          "20 aten::mm;", "40 " + module + step, "50 cudaLaunchKernel;",
                                                          "55 " + module + step, "80 " + module, "90 "}));
}

TEST(Kineto, FramesOfLibrariesGetBackWhatTellsThatTheyAreSome) {
  EXPECT_EQ(frame_of_kineto("torch/utils/data/dataloader.py(634): __next__"),
            "__next__ (/site-packages/torch/utils/data/dataloader.py:634)");
  EXPECT_EQ(frame_of_kineto("threading.py(300): wait"), "wait (/lib/python3/threading.py:300)");
  EXPECT_EQ(frame_of_kineto("multiprocessing/queues.py(9): get"), "get (/lib/python3/multiprocessing/queues.py:9)");
  EXPECT_EQ(frame_of_kineto("/home/u (1)/train.py(3): Net.forward"), "Net.forward (/home/u (1)/train.py:3)");
  EXPECT_EQ(frame_of_kineto("models/torch.py(3): f"), "f (models/torch.py:3)");
  for (const char* none : {"<built-in function len>", "nn.Module: Linear_0", "", "(3): f", "x.py(three): f", "x.py(3)"})
    EXPECT_EQ(frame_of_kineto(none), "") << none;
}

TEST(Kineto, ProfilerStepsAreStepsAndAnnotationsPhases) {
  std::vector<std::string> events{kernel("0", "100")};
  for (int step = 0; step < 3; ++step)
    events.push_back(
        event("user_annotation", fmt::format("ProfilerStep#{}", step), fmt::format("{}", step * 10), "9", ""));
  const auto r = read(trace(events));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.tiers, "XC");
  const auto marks = r->find(SourceKind::kMarks, "100/0/100/trace");
  ASSERT_TRUE(marks);
  const Track& track = r->tracks[static_cast<std::size_t>(*marks)];
  ASSERT_TRUE(track.find(Metric::kSteps));
  EXPECT_EQ(track.find(Metric::kSteps)->values, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(track.lists.size(), 6U);
}

TEST(Kineto, StepsThatOverlapByRoundingFollowOneAnother) {
  std::vector<std::string> events{kernel("0", "100")};
  for (int step = 0; step < 3; ++step)
    events.push_back(
        event("user_annotation", fmt::format("ProfilerStep#{}", step), fmt::format("{}", step * 10), "10.002", ""));
  const auto r = read(trace(events));
  ASSERT_TRUE(r);
  for (const auto& list : r->lists) EXPECT_LE(list.size(), 1U) << "none is within the one before";
}

TEST(Kineto, OfATraceThatWasCutWhatIsWholeIsUsed) {
  const std::string whole = trace({kernel("0", "10"), kernel("20", "10"), kernel("40", "10")});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto r = read(whole.substr(0, size));
    if (!r) {
      EXPECT_FALSE(r.error().what.empty());
      continue;
    }
    ASSERT_EQ(r->losses.size(), 1U) << "at byte " << size;
    EXPECT_EQ(r->losses[0].what, "truncated_trace");
    EXPECT_GE(busy(*r), 10'000);
  }
  const auto two = read(whole.substr(0, whole.rfind("\"dur\"")));
  ASSERT_TRUE(two);
  EXPECT_EQ(busy(*two), 20'000);
  const auto all = read(whole);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->losses.empty());
}

TEST(Kineto, EventsThatCannotBeAreLeftOutAndCounted) {
  const auto r = read(trace({kernel("0", "10"), kernel("20", "-10"), kernel("1e300", "1"), kernel("\"now\"", "1"),
                             event("kernel", "k", "50", "5", "\"device\":-1", -1, 7)}));
  ASSERT_TRUE(r);
  EXPECT_EQ(busy(*r), 10'000);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].what, "unreadable_event");
  EXPECT_EQ(r->losses[0].count, 4);
}

TEST(Kineto, AFileWithoutWorkOfAGpuIsRefusedWithTheNextStep) {
  const auto host = read(trace({event("cpu_op", "aten::add", "0", "10", "")}));
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().hint.find("ProfilerActivity.CUDA"), std::string::npos);
  const auto other = read(R"({"traceEvents":[{"ph":"X","cat":"mine","name":"x","ts":1,"dur":1}]})");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("PyTorch's profiler"), std::string::npos);
  const auto xla = read(R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)"
                        R"({"ph":"X","pid":1,"tid":13,"name":"fusion","ts":1,"dur":1}]})");
  ASSERT_FALSE(xla);
  EXPECT_NE(xla.error().what.find("JAX"), std::string::npos);
  EXPECT_EQ(xla.error().hint.find("torch"), std::string::npos);
}

TEST(Kineto, OfXlaTheStreamsOfItsGpusAreRead) {
  const auto r = read(R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)"
                      R"({"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14"}},)"
                      R"({"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"XLA Modules"}},)"
                      R"({"ph":"X","pid":1,"tid":20,"name":"jit_step","ts":1,"dur":100},)"
                      R"({"ph":"X","pid":1,"tid":14,"name":"MemcpyH2D","ts":1,"dur":10},)"
                      R"({"ph":"X","pid":1,"tid":14,"name":"fusion","ts":50,"dur":20}]})");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.end - r->meta.start, 69 * kMicrosecond) << "the line of the modules is none";
  EXPECT_EQ(r->meta.extra.at("calls"), "not read");
}

TEST(Kineto, OfXlaPythonFunctionsTellWhatTheHostDidBeforeALaunch) {
  const auto host = [](std::string_view name, int at, int length) {
    return fmt::format(R"({{"ph":"X","pid":501,"tid":9,"name":"{}","ts":{}.0000006,"dur":{}}},)", name, at, length);
  };
  std::string text = R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)"
                     R"({"ph":"M","pid":501,"name":"process_name","args":{"name":"/host:CPU"}},)"
                     R"({"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14"}},)";
  for (int step = 0; step < 3; ++step)
    text += host("$pipeline.py:88 __next__", 100 * step, 50) + host("PjitFunction(train_step)", 100 * step + 50, 5) +
            fmt::format(R"({{"ph":"X","pid":1,"tid":14,"name":"fusion","ts":{},"dur":40}},)", 100 * step + 55);
  text.back() = ']';
  const auto r = read(text + "}");
  ASSERT_TRUE(r) << r.error().what;
  const SourceId thread = r->all(SourceKind::kCallThread).front();
  std::vector<std::string> names;
  for (const ListRow& row : r->tracks[static_cast<std::size_t>(thread)].lists)
    for (const TextId id : r->lists[row.list]) names.push_back(r->texts[id]);
  ASSERT_GE(names.size(), 2u);
  EXPECT_EQ(names[0], "Launch of PjitFunction(train_step)") << "the trace begins with its first call";
  EXPECT_EQ(names[1], "__next__ (pipeline.py:88)");
  for (const auto& [tier, why] : r->meta.missing_tiers) EXPECT_NE(tier, 'Y') << why;
  EXPECT_EQ(frame_of_jax("$jax/_src/api.py:12 f"), "f (/site-packages/jax/_src/api.py:12)");
  EXPECT_EQ(frame_of_jax("$builtins next"), "");
}

TEST(Kineto, WhatAProgramOfJaxMarksIsAnAnnotation) {
  std::string text = R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)"
                     R"({"ph":"M","pid":501,"name":"process_name","args":{"name":"/host:CPU"}},)"
                     R"({"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14"}},)";
  for (int step = 0; step < 3; ++step)
    for (const auto& [name, at] : {std::pair{"next_batch", 0}, std::pair{"ThreadpoolListener::Record", 10},
                                   std::pair{"PjitFunction(train_step)", 50}})
      text +=
          fmt::format(R"({{"ph":"X","pid":501,"tid":9,"name":"{}","ts":{},"dur":40}},)", name, 100 * step + at) +
          fmt::format(R"({{"ph":"X","pid":1,"tid":14,"name":"fusion","ts":{},"dur":4}},)", 100 * step + 55 + at / 5);
  text.back() = ']';
  const auto r = read(text + "}");
  ASSERT_TRUE(r) << r.error().what;
  ASSERT_EQ(r->all(SourceKind::kMarks).size(), 1u);
  std::vector<std::string> names;
  for (const ListRow& row : r->tracks[static_cast<std::size_t>(r->all(SourceKind::kMarks)[0])].lists)
    for (const TextId id : r->lists[row.list]) names.push_back(r->texts[id]);
  EXPECT_EQ(names, (std::vector<std::string>(3, "next_batch")));
}

TEST(Kineto, OfTensorflowTheIteratorIsAnOperatorAndItsTraceIsCalledSo) {
  const auto host = [](std::string_view name, int at, int length) {
    return fmt::format(R"({{"ph":"X","pid":501,"tid":9,"name":"{}","ts":{},"dur":{}}},)", name, at, length);
  };
  std::string text = R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)"
                     R"({"ph":"M","pid":501,"name":"process_name","args":{"name":"/host:CPU"}},)"
                     R"({"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14"}},)";
  for (int step = 0; step < 3; ++step)
    text += host("IteratorGetNext", 100 * step, 50) + host("EagerKernelExecute", 100 * step + 50, 5) +
            fmt::format(R"({{"ph":"X","pid":1,"tid":14,"name":"MatMul","ts":{},"dur":40}},)", 100 * step + 55);
  text.back() = ']';
  const auto r = read(text + "}");
  ASSERT_TRUE(r) << r.error().what;
  ASSERT_FALSE(r->all(SourceKind::kCallThread).empty());
  EXPECT_NE(std::find(r->texts.begin(), r->texts.end(), "IteratorGetNext"), r->texts.end());
  for (const auto& [tier, why] : r->meta.missing_tiers) {
    EXPECT_EQ(why.find("XLA"), std::string::npos) << why;
    EXPECT_EQ(why.find("holds no annotation"), std::string::npos) << why;
    EXPECT_TRUE(tier != 'N' || why == "a trace of TensorFlow does not have it") << why;
  }
}

TEST(Kineto, ATimelineOfTensorflowHasStreamsByItsProcesses) {
  const std::string text =
      R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0/stream:all Compute"}},)"
      R"({"ph":"M","pid":2,"name":"process_name","args":{"name":"/job:localhost/replica:0/task:0/device:CPU:0 Compute"}},)"
      R"({"ph":"X","cat":"Op","pid":2,"tid":0,"name":"IteratorGetNext","ts":0,"dur":60},)"
      R"({"ph":"X","cat":"Op","pid":1,"tid":0,"name":"MatMul","ts":60,"dur":40}]})";
  const auto r = read(text);
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(r->meta.end - r->meta.start, 100 * kMicrosecond);
}

TEST(Kineto, TimesAreRoundedToNanoseconds) {
  const auto r = read(trace({kernel("10.0006", "1.9994"), kernel("20.00049", "1")}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.start, 10'001);
  EXPECT_EQ(r->meta.end, 21'000);
}

TEST(Kineto, IsToldFromOtherJson) {
  EXPECT_EQ(sniff_log(trace({})), LogFormat::kKineto);
  EXPECT_EQ(sniff_log("[\n{\"ph\":\"X\",\"cat\":\"kernel\""), LogFormat::kKineto);
  EXPECT_EQ(sniff_log(R"({"hostname":"a","query_time":"now","gpus":[]})"), LogFormat::kGpustat);
  EXPECT_EQ(sniff_log(R"({"type":"meta","format":1})"), LogFormat::kUnknown);
}

TEST(Kineto, CopiesAreTiedToTheirOperatorsByTheirNumbersAndNotByTheirOrder) {
  const auto op = [](std::string_view name, std::string_view at, int tid) {
    return event("cpu_op", name, at, "5", "", 100, tid);
  };
  const auto call = [](std::string_view at, int correlation, int tid) {
    return event("cuda_runtime", "cudaMemcpyAsync", at, "1", fmt::format(R"("correlation":{})", correlation), 100, tid);
  };
  const auto copy = [](std::string_view name, std::string_view at, std::string_view length, int correlation) {
    return event("gpu_memcpy", name, at, length, fmt::format(R"("device":0,"stream":7,"correlation":{})", correlation),
                 0, 7);
  };
  const std::string_view within = "Memcpy DtoD (Device -> Device)", to_host = "Memcpy DtoH (Device -> Pinned)";
  // The second of two threads launches later, and its copy runs first.
  const auto r = read(trace({op("aten::contiguous", "10", 1), call("12", 1, 1), op("aten::cpu", "20", 2),
                             call("22", 2, 2), copy(to_host, "30", "10", 2), copy(within, "50", "30", 1),
                             copy(within, "90", "5", 9), copy(to_host, "100", "20", 0)}));
  ASSERT_TRUE(r) << r.error().what;
  const auto profile = device_profile(*r, r->all(SourceKind::kGpu).front(), r->meta.start, r->meta.end);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->copied_by, (std::map<GpuWork, std::string>{{GpuWork::kCopyOnDevice, "aten::contiguous"}}))
      << "most copies to the host were launched by nobody who is known";
}

}  // namespace
}  // namespace headroom

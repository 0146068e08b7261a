import ByteCoding
import Foundation
import Observability
import Testing

@Suite("Spans and their encoding")
struct TelemetryTests {
  private static let trace = "0af7651916cd43dd8448eb211c80319c"
  private static let parent = "b7ad6b7169203331"

  @Test(
    "A traceparent of the specification is read",
    arguments: [
      ("00-\(trace)-\(parent)-01", true), ("00-\(trace)-\(parent)-00", false),
      ("00-\(trace)-\(parent)-03", true), ("cc-\(trace)-\(parent)-01-what-the-future", true),
    ])
  func readable(_ text: String, _ isSampled: Bool) throws {
    let context = try #require(TraceContext(traceparent: text))
    #expect(context.traceID == Self.trace && context.spanID == Self.parent && context.isSampled == isSampled)
    #expect(context.traceparent == "00-\(Self.trace)-\(Self.parent)-\(isSampled ? "01" : "00")")
  }

  @Test(
    "A traceparent that breaks the specification is ignored",
    arguments: [
      "", "00", "00-\(trace)-\(parent)", "00-\(trace)-\(parent)-01-more", "ff-\(trace)-\(parent)-01",
      "00-\(trace.uppercased())-\(parent)-01", "00-\(String(repeating: "0", count: 32))-\(parent)-01",
      "00-\(trace)-\(String(repeating: "0", count: 16))-01", "00-\(trace.dropLast())-\(parent)-01",
      "00-\(trace)-\(parent)x-01", "00-\(trace)-\(parent)-1", "00-\(trace)-\(parent)-0g", " 00-\(trace)-\(parent)-01",
    ])
  func unreadable(_ text: String) { #expect(TraceContext(traceparent: text) == nil) }

  @Test(
    "The state of a trace is sent on as one list of at most 512 characters, without what is empty or malformed",
    arguments: [
      (["dd=s:2;o:rum"], "dd=s:2;o:rum"), (["a=1,b=2", "c=3"], "a=1,b=2,c=3"), ([" a=1 ,\t, b= 2 , "], "a=1,b= 2"),
      (["fw529a3039@dt=FfffffFf;1,a_-*/=x"], "fw529a3039@dt=FfffffFf;1,a_-*/=x"), ([], nil), ([""], nil), ([",,"], nil),
      (["a"], nil), (["a="], nil), (["=1"], nil), (["a=1=2"], nil), (["A=1"], nil), (["a b=1"], nil),
      (["a=1", "b=\u{e9}"], nil), (["a=\u{1}"], nil), ([String(repeating: ",", count: 10_000) + "a=1"], "a=1"),
      (["a=" + String(repeating: "x", count: 510)], "a=" + String(repeating: "x", count: 510)),
      (["a=" + String(repeating: "x", count: 511)], nil),
      (["a=1,b=" + String(repeating: "x", count: 507) + ",c=3"], "a=1"),
      (
        [(0..<40).map { "k\($0)=1" }.joined(separator: ",")],
        (0..<32).map { "k\($0)=1" }.joined(separator: ",")
      ),
    ] as [([String], String?)])
  func state(_ values: [String], _ forwarded: String?) { #expect(TraceState.forwarded(values) == forwarded) }

  @Test("A child has the trace of its parent and an id of its own")
  func child() throws {
    let root = try #require(TraceContext.root(traceID: Self.trace, isSampled: true))
    let children = (0..<100).map { _ in root.child() }
    #expect(children.allSatisfy { $0.traceID == Self.trace && $0.isSampled && $0.spanID.utf8.count == 16 })
    #expect(Set(children.map(\.spanID) + [root.spanID]).count == 101)
  }

  @Test("A sampler samples its share of the ids, always the same ones", arguments: [0, 0.05, 0.5, 1])
  func sampling(_ ratio: Double) throws {
    let sampler = try #require(Sampler(ratio: ratio))
    var random = SystemRandomNumberGenerator()
    let ids = (0..<20_000).map { _ in
      Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
    let sampled = ids.filter(sampler.samples)
    #expect(abs(Double(sampled.count) / 20_000 - ratio) < 0.02)
    #expect(sampled.allSatisfy(sampler.samples))
    #expect(!sampler.samples("no id"))
  }

  @Test("A share below 0 or above 1 is none", arguments: [-0.1, 1.1, .nan, .infinity])
  func noShare(_ ratio: Double) { #expect(Sampler(ratio: ratio) == nil) }

  private func span(_ name: String, isFailure: Bool = false) throws -> Span {
    let context = try #require(TraceContext(traceID: Self.trace, spanID: Self.parent, isSampled: true))
    return Span(
      name, .server, context: context, parentID: nil, from: Timestamp(seconds: 1_700_000_000, nanoseconds: 7),
      to: Timestamp(seconds: 1_700_000_001),
      attributes: [("http.route", .text("/a\"b")), ("http.response.status_code", .number(101)), ("ok", .flag(true))],
      isFailure: isFailure)
  }

  @Test("A full queue drops whole requests and counts their spans; what it took first leaves it first")
  func queue() throws {
    let queue = SpanQueue(capacity: 5)
    for name in ["a", "b", "c"] { queue.add([try span(name), try span(name)]) }
    #expect(queue.dropped == 2)
    #expect(queue.take(3).map(\.name) == ["a", "a", "b"])
    #expect(queue.take(3).map(\.name) == ["b"] && queue.take(3).isEmpty)
    queue.add([try span("d")])
    #expect(queue.take(1).count == 1 && queue.dropped == 2)
  }

  @Test(
    "What a collector rejects is read, as a number or as text; any other answer says nothing",
    arguments: [
      (#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#, 3, "too old"),
      (#"{"partialSuccess":{"rejectedDataPoints":2}}"#, 2, ""),
      ("{}", nil, ""), (#"{"partialSuccess":{}}"#, nil, ""), (#"{"partialSuccess":{"rejectedSpans":"0"}}"#, nil, ""),
      (#"{"partialSuccess":{"rejectedSpans":"-1"}}"#, nil, ""), (#"{"partialSuccess":{"rejectedSpans":"x"}}"#, nil, ""),
      ("", nil, ""), ("<html>", nil, ""), (#"{"partialSuccess":7}"#, nil, ""),
    ] as [(String, Int?, String)])
  func partialSuccess(_ answer: String, _ rejected: Int?, _ message: String) {
    let part = PartialSuccess(answer: Array(answer.utf8))
    #expect(part?.rejected == rejected && part?.message ?? "" == message)
  }

  private func object(_ bytes: [UInt8]) throws -> [String: Any] {
    try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
  }

  @Test("Spans have ids in hex, times as strings, and the status of a failure")
  func spans() throws {
    let encoding = OTLPEncoding(service: "sallyport", version: "1", instance: "i")
    let text = String(
      decoding: encoding.traces([try span("GET /"), try span("GET /", isFailure: true)]), as: UTF8.self)
    for part in [
      #""traceId":"\#(Self.trace)""#, #""spanId":"\#(Self.parent)""#, #""startTimeUnixNano":"1700000000000000007""#,
      #""endTimeUnixNano":"1700000001000000000""#, #""kind":2"#, #""status":{"code":2}"#,
      #"{"key":"service.name","value":{"stringValue":"sallyport"}}"#,
      #"{"key":"http.response.status_code","value":{"intValue":"101"}}"#, #"{"key":"ok","value":{"boolValue":true}}"#,
    ] {
      #expect(text.contains(part), "\(part)")
    }
    #expect(text.components(separatedBy: #""status""#).count == 2)
    #expect(!text.contains("parentSpanId"))
  }

  @Test("Counters, gauges and histograms become sums, gauges and histograms; infinite values and empty families none")
  func metrics() async throws {
    let registry = MetricsRegistry()
    registry.counters("events_total", "Events.", labels: ["kind"]).counter("a").add(3)
    registry.values("size_bytes", "Size.") { [Sample(5), Sample(.infinity)] }
    registry.values("nothing", "Nothing.") { [] }
    let bounds: [Duration] = [.milliseconds(1), .seconds(1)]
    let histogram = registry.histograms("wait_seconds", "Wait.", bounds: bounds).histogram()
    for duration in [Duration.microseconds(5), .milliseconds(500), .seconds(9)] { histogram.observe(duration) }
    let encoding = OTLPEncoding(service: "sallyport", version: "1", instance: "i")
    let bytes = encoding.metrics(
      await registry.snapshot(), since: Timestamp(seconds: 1), at: Timestamp(seconds: 2))
    let resource = try #require((try object(bytes)["resourceMetrics"] as? [[String: Any]])?.first)
    let scope = try #require((resource["scopeMetrics"] as? [[String: Any]])?.first)
    let families = try #require(scope["metrics"] as? [[String: Any]])
    #expect(families.map { $0["name"] as? String } == ["events_total", "size_bytes", "wait_seconds"])
    let sum = try #require(families[0]["sum"] as? [String: Any])
    #expect(sum["isMonotonic"] as? Bool == true && sum["aggregationTemporality"] as? Int == 2)
    let gauge = try #require(families[1]["gauge"] as? [String: Any])
    #expect((gauge["dataPoints"] as? [Any])?.count == 1 && families[1]["unit"] as? String == "By")
    let distribution = try #require(families[2]["histogram"] as? [String: Any])
    let point = try #require((distribution["dataPoints"] as? [[String: Any]])?.first)
    #expect(
      point["bucketCounts"] as? [String] == ["1", "1", "1"] && point["explicitBounds"] as? [Double] == [0.001, 1])
    #expect(point["count"] as? String == "3")
  }

  @Test("A clock that is centuries ahead, or before 1970, does not end the process", arguments: ["json", "protobuf"])
  func faultyClock(form: String) async {
    let registry = MetricsRegistry()
    registry.counters("events_total", "Events.", labels: []).counter().add(1)
    let encoding = OTLPEncoding(
      service: "sallyport", version: "1", instance: "i", form: form == "json" ? .json : .protobuf)
    for (instant, text) in [
      (Timestamp(seconds: 10_000_000_000), "10000000000000000000"), (Timestamp(seconds: .max), "\(UInt64.max)"),
      (Timestamp(seconds: -1), "0"),
    ] {
      let bytes = encoding.metrics(await registry.snapshot(), since: instant, at: instant)
      #expect(!bytes.isEmpty)
      if form == "json" {
        #expect(String(decoding: bytes, as: UTF8.self).contains(#""timeUnixNano":"\#(text)""#), "\(instant)")
      }
    }
  }
}

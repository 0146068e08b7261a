import ByteCoding
import Observability
import Testing

/// The expected bytes are what the Python package opentelemetry-proto 1.x writes for the same messages.
@Suite("OTLP in Protocol Buffers")
struct OTLPProtobufTests {
  private let encoding = OTLPEncoding(service: "sallyport", version: "1", instance: "i", form: .protobuf)

  @Test("Spans are the bytes that the reference implementation writes")
  func spans() throws {
    let context = try #require(
      TraceContext(traceID: "0af7651916cd43dd8448eb211c80319c", spanID: "b7ad6b7169203331", isSampled: true))
    let spans = [false, true].map { isFailure in
      Span(
        "GET /", .server, context: context, parentID: isFailure ? "00f067aa0ba902b7" : nil,
        from: Timestamp(seconds: 1_700_000_000, nanoseconds: 7), to: Timestamp(seconds: 1_700_000_001),
        attributes: [
          ("http.route", .text("/a\"b")), ("http.response.status_code", .number(101)), ("ok", .flag(true)),
          ("none", .flag(false)), ("below", .number(-1)), ("empty", .text("")),
        ], isFailure: isFailure)
    }
    #expect(Hex.encode(encoding.traces(spans)) == Self.spans)
  }

  @Test("Metrics are the bytes that the reference implementation writes; families without values are left out")
  func metrics() async throws {
    let registry = MetricsRegistry()
    registry.counters("events_total", "Events.", labels: ["kind"]).counter("a").add(3)
    registry.values("size_bytes", "Size.") { [Sample(0), Sample(5.5)] }
    registry.values("nothing", "Nothing.") { [] }
    let bounds: [Duration] = [.milliseconds(500), .seconds(1)]
    let histogram = registry.histograms("wait_seconds", "Wait.", bounds: bounds).histogram()
    for duration in [Duration.milliseconds(250), .seconds(1), .milliseconds(8500)] { histogram.observe(duration) }
    let bytes = encoding.metrics(
      await registry.snapshot(), since: Timestamp(seconds: 1), at: Timestamp(seconds: 2))
    #expect(Hex.encode(bytes) == Self.metrics)
  }

  @Test(
    "What a collector rejects is read; any other answer says nothing",
    arguments: [
      ("0a0b08031207746f6f206f6c64", 3, "too old"), ("0a020802", 2, ""), ("0a0b08ffffffffffffffffff01", nil, ""),
      ("", nil, ""), ("0a00", nil, ""),
      ("0a02", nil, ""), ("0a7f0803", nil, ""), ("0affffffffffffffffff01", nil, ""),
      ("ffffffffffffffffffffff", nil, ""),
      ("0805", nil, ""), ("0b", nil, ""), ("12030a010a0a020807", 7, ""), ("7b7d", nil, ""),
    ] as [(String, Int?, String)])
  func partialSuccess(_ answer: String, _ rejected: Int?, _ message: String) throws {
    let part = PartialSuccess(answer: try #require(Hex.decode(answer)), in: .protobuf)
    #expect(part?.rejected == rejected && part?.message ?? "" == message)
  }

  @Test func `a long message of a collector is cut at the same place in both forms, whatever marks it has`() throws {
    let message = String(repeating: "e\u{301}", count: 150) + String(repeating: "\u{301}", count: 5000)
    let text = Array(message.utf8)
    func length(_ count: Int) -> [UInt8] { [UInt8(count & 0x7F) | 0x80, UInt8(count >> 7)] }
    let part: [UInt8] = [0x08, 0x03, 0x12] + length(text.count) + text
    let protobuf = PartialSuccess(answer: [0x0A as UInt8] + length(part.count) + part, in: .protobuf)
    let json = PartialSuccess(
      answer: Array(#"{"partialSuccess":{"rejectedSpans":3,"errorMessage":"\#(message)"}}"#.utf8))
    for found in [protobuf, json] {
      #expect(found?.rejected == 3 && found?.message.unicodeScalars.count == 500)
    }
    #expect(protobuf?.message.utf8.elementsEqual(json?.message.utf8 ?? "".utf8) == true)
  }

  private static let spans =
    "0ac8030a510a1b0a0c736572766963652e6e616d65120b0a0973616c6c79706f72740a160a0f736572766963652e76657273"
    + "696f6e12030a01310a1a0a13736572766963652e696e7374616e63652e696412030a016912f2020a0e0a0973616c6c79706f"
    + "727412013112a7010a100af7651916cd43dd8448eb211c80319c1208b7ad6b71692033312a05474554202f30023907002a36"
    + "fe9c97174100cac471fe9c97174a140a0a687474702e726f75746512060a042f6122624a1f0a19687474702e726573706f6e"
    + "73652e7374617475735f636f6465120218654a080a026f6b120210014a0a0a046e6f6e65120210004a140a0562656c6f7712"
    + "0b18ffffffffffffffffff014a0b0a05656d70747912020a0012b5010a100af7651916cd43dd8448eb211c80319c1208b7ad"
    + "6b7169203331220800f067aa0ba902b72a05474554202f30023907002a36fe9c97174100cac471fe9c97174a140a0a687474"
    + "702e726f75746512060a042f6122624a1f0a19687474702e726573706f6e73652e7374617475735f636f6465120218654a08"
    + "0a026f6b120210014a0a0a046e6f6e65120210004a140a0562656c6f77120b18ffffffffffffffffff014a0b0a05656d7074"
    + "7912020a007a021802"

  private static let metrics =
    "0ae2020a510a1b0a0c736572766963652e6e616d65120b0a0973616c6c79706f72740a160a0f736572766963652e76657273"
    + "696f6e12030a01310a1a0a13736572766963652e696e7374616e63652e696412030a0169128c020a0e0a0973616c6c79706f"
    + "727412013112470a0c6576656e74735f746f74616c12074576656e74732e3a2e0a281100ca9a3b0000000019009435770000"
    + "00002100000000000008403a0b0a046b696e6412030a01611002180112410a0a73697a655f6279746573120553697a652e1a"
    + "0242792a280a121900943577000000002100000000000000000a12190094357700000000210000000000001640126e0a0c77"
    + "6169745f7365636f6e64731205576169742e1a01734a540a501100ca9a3b0000000019009435770000000021030000000000"
    + "000029000000000080234032180100000000000000010000000000000001000000000000003a10000000000000e03f000000"
    + "000000f03f1002"
}

import ByteCoding
import Foundation
import Glibc
import Logging
import Observability
import Testing

@Suite("Text log lines")
struct TextLogTests {
  private let pipe = Pipe()

  private func line(isColored: Bool = false, _ body: (Logger) -> Void) throws -> String {
    let sink = LineSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
    var logger = Logger(label: "test") { _ in
      TextLineHandler(sink: sink, isColored: isColored) {
        Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)
      }
    }
    logger.logLevel = .info
    body(logger)
    sink.flush()
    try pipe.fileHandleForWriting.close()
    return String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  @Test("A line has the time of day, the level, the message and the fields in their order")
  func plain() throws {
    var fields = LogFields()
    fields.append("request_id", "5f1d")
    fields.append("bytes", 12)
    fields.append("detail", "a \"quoted\" text")
    fields.append("empty", "")
    #expect(
      try line { FieldLogger($0).log(level: .warning, "session closed", fields) }
        == "22:13:20.123Z WARNING  session closed request_id=5f1d bytes=12 detail=\"a \\\"quoted\\\" text\" "
        + "empty=\"\"\n"
    )
  }

  @Test(
    "A value that is no word is in quotes, and a combining mark hides no quotation mark",
    arguments: [
      ("\"\u{301}", "\"\\\"\u{301}\""), ("=\u{301}", "\"=\u{301}\""), ("a\u{A0}b", "\"a\u{A0}b\""),
      ("a\u{301}", "a\u{301}"),
    ])
  func quoted(_ value: String, _ shown: String) throws {
    let line = try line { $0.notice("refused", metadata: ["detail": "\(value)"]) }
    #expect(Array(line.utf8).suffix(shown.utf8.count + 8) == Array("detail=\(shown)\n".utf8)[...])
  }

  @Test("On a terminal with colors, the level is colored and field names are dim")
  func colored() throws {
    #expect(
      try line(isColored: true) { $0.error("no", metadata: ["code": "x"]) }
        == "22:13:20.123Z \u{1B}[1;31mERROR\u{1B}[0m    no \u{1B}[2mcode=\u{1B}[0mx\n")
  }

  @Test(
    "Untrusted text cannot control a terminal or start a line",
    arguments: ["\n", "\r", "\u{1B}[2J", "\u{7F}", "\u{9B}31m", "\u{2028}", "\u{202E}"])
  func control(_ text: String) throws {
    let line = try line { $0.notice("refused", metadata: ["path": "/\(text)x"]) }
    #expect(line.hasSuffix("x\n") || line.hasSuffix("x\"\n"))
    let harmful = line.dropLast().unicodeScalars.filter { scalar in
      [.control, .format, .lineSeparator].contains(scalar.properties.generalCategory)
    }
    #expect(harmful.isEmpty, "\(line.debugDescription)")
    #expect(line.contains("\\u{"))
  }
}

import ByteCoding
import Foundation
import Logging
import Observability
import Testing

@Suite("JSON log lines")
struct JSONLogTests {
  private let pipe = Pipe()

  private func logger(_ sink: LineSink) -> Logger {
    var logger = Logger(label: "test") { label in
      JSONLineHandler(label: label, sink: sink) { Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789) }
    }
    logger.logLevel = .info
    return logger
  }

  private func lines() throws -> [Substring] {
    try pipe.fileHandleForWriting.close()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: true)
  }

  private func sink(capacity: Int = 1 << 20) -> LineSink {
    LineSink(descriptor: pipe.fileHandleForWriting.fileDescriptor, capacity: capacity)
  }

  @Test("An event is one line: time, level, logger, message, then the metadata sorted by name")
  func oneLine() throws {
    let sink = sink()
    logger(sink).notice("refused", metadata: ["code": "nonce_used", "attempt": .stringConvertible(3)])
    sink.flush()
    #expect(
      try lines() == [
        #"{"time":"2023-11-14T22:13:20.123Z","level":"notice","logger":"test","message":"refused","#
          + #""attempt":3,"code":"nonce_used"}"#
      ])
  }

  @Test(
    "No text can leave its line or its JSON string",
    arguments: ["a\nb", "\"", "\\", "\u{0}\u{1F}\u{7F}\u{85}", "\u{2028}\u{2029}", "\r\n", "é 🚪", "\",\"code\":\"x"])
  func hostileText(_ text: String) throws {
    let sink = sink()
    logger(sink).notice("refused", metadata: ["path": "\(text)", "\(text)": "key"])
    sink.flush()
    let lines = try lines()
    let object = try JSONSerialization.jsonObject(with: Data(try #require(lines.first).utf8)) as? [String: Any]
    #expect(lines.count == 1)
    #expect(object?["path"] as? String == text)
    #expect(object?[text] as? String == "key")
    #expect(object?.count == 6)
  }

  @Test("Fields keep their order, and a field with a reserved name gets a prefix")
  func fields() throws {
    let sink = sink()
    var fields = LogFields()
    fields.append("path", "/a\"b\n")
    fields.append("code", UInt16(1001))
    fields.append("bytes", UInt64.max)
    fields.append("debt", -12)
    fields.append("app", nil as String?)
    fields.append("close_code", nil as UInt16?)
    fields.append("repeated", true)
    fields.append("level", "debug")
    FieldLogger(logger(sink)).log(level: .info, "session closed", fields)
    sink.flush()
    #expect(
      try lines() == [
        #"{"time":"2023-11-14T22:13:20.123Z","level":"info","logger":"test","message":"session closed","#
          + #""path":"/a\"b\n","code":1001,"bytes":9223372036854775807,"debt":-12,"repeated":true,"#
          + #""metadata.level":"debug"}"#
      ])
  }

  @Test("Numbers in metadata are JSON numbers, and values that JSON cannot write as numbers are strings")
  func numbers() throws {
    let sink = sink()
    logger(sink).notice(
      "stopped",
      metadata: [
        "cut_off": .number(0), "port": .number(UInt16(6200)), "share": .stringConvertible(0.25),
        "endless": .stringConvertible(Double.infinity), "text": "7",
      ])
    sink.flush()
    #expect(
      try lines().first?.hasSuffix(
        #""message":"stopped","cut_off":0,"endless":"inf","port":6200,"share":0.25,"text":"7"}"#) == true)
  }

  @Test("Metadata cannot replace the reserved members of a line")
  func reservedNames() throws {
    let sink = sink()
    logger(sink).notice("refused", metadata: ["message": "admitted", "level": "debug"])
    sink.flush()
    let line = try #require(try lines().first)
    #expect(line.contains(#""message":"refused","#) && line.contains(#""metadata.message":"admitted""#))
  }

  @Test("An event below the logger's level is not logged")
  func level() throws {
    let sink = sink()
    logger(sink).debug("detail")
    sink.flush()
    #expect(try lines().isEmpty)
  }

  @Test("Lines of many threads are not mixed, and the lines of each thread keep their order")
  func concurrency() throws {
    let sink = sink()
    DispatchQueue.concurrentPerform(iterations: 4) { worker in
      for number in 0..<100 { sink.write("\(worker):\(number)") }
    }
    sink.flush()
    let lines = try lines()
    #expect(lines.count == 400)
    for worker in 0..<4 {
      #expect(lines.filter { $0.hasPrefix("\(worker):") } == (0..<100).map { "\(worker):\($0)" })
    }
  }

  @Test("A stalled reader does not block writers: lines beyond the capacity are dropped and counted")
  func stalledReader() throws {
    let sink = sink(capacity: 1000)
    // Far more than the pipe and the buffer can store together.
    for _ in 0..<10_000 { sink.write(String(repeating: "x", count: 99)) }
    var text = ""
    while !text.contains("dropped") {
      text += String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
    }
    sink.flush()
    let count = text.split(separator: "\n").filter { $0.hasPrefix("x") }.count
    #expect(count > 0 && count < 10_000)
  }

  @Test("A stalled reader does not block the flush beyond its time limit")
  func stalledEnd() throws {
    let sink = sink(capacity: 1 << 20)
    // Twice the capacity of a pipe.
    for _ in 0..<128 { sink.write(String(repeating: "x", count: 1023)) }
    #expect(!sink.flush(patience: .milliseconds(100)))
    var count = 0
    while count < 128 << 10 { count += pipe.fileHandleForReading.availableData.count }
    #expect(sink.flush())
  }
}

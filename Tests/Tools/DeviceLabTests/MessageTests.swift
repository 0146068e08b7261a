import Foundation
import Testing

@testable import attest

@Suite("The phone's messages")
struct MessageTests {
  @Test(
    "A line of the backend's log is a message of the phone, and other lines are none",
    arguments: [
      (#"{"message":"📱 SMS to +15550101: Your OTP is 123456"}"#, "+15550101", "123456"),
      ("x SMS to +1: Your OTP is 0000 ", "+1", "0000"),
      (#"{"message":"📧 E-mail to Ada@Example.com: Your OTP is 654321"}"#, "ada@example.com", "654321"),
    ])
  func message(_ line: String, _ address: String, _ code: String) throws {
    let message = try #require(LogMessages.message(in: line.utf8))
    #expect(message.address == address && message.code == code)
  }

  @Test(
    "A line that is not quite a message is none",
    arguments: [
      "", "SMS to : Your OTP is 1", "SMS to +1: Your OTP is ", "SMS to +1: A recovery", "SMS to +1",
      "SMS to ada@example.com: Your OTP is 1", "E-mail to +1: Your OTP is 1", "E-mail to : Your OTP is 1",
    ])
  func other(_ line: String) { #expect(LogMessages.message(in: line.utf8) == nil) }

  @Test("Lines are read as they are completed, each once, also after the log was replaced")
  func log() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let log = LogMessages(path: path)
    #expect(throws: MessageSourceError.self) { try log.codes(to: "+1") }
    try Data("SMS to +1: Your OTP is 111111\nSMS to +2: Your OTP is 222222\nSMS to +1: Your OTP is 33".utf8)
      .write(to: URL(fileURLWithPath: path))
    #expect(try log.codes(to: "+1") == ["111111"])
    let file = try #require(FileHandle(forWritingAtPath: path))
    try file.seekToEnd()
    try file.write(contentsOf: Data("3333\n".utf8))
    try file.close()
    #expect(try log.codes(to: "+1") == ["111111", "333333"])
    #expect(try log.codes(to: "+2") == ["222222"])
    #expect(try log.codes(to: "+3").isEmpty)
    try Data("SMS to +3: Your OTP is 444444\n".utf8).write(to: URL(fileURLWithPath: path))
    #expect(try log.codes(to: "+3") == ["444444"])
  }
}

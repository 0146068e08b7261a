import Testing
import Transport

@testable import TransportEngine

/// Paths whose rest the responder does not read.
@Suite struct UnreadPathTests {
  private static let beginning: StaticString = "/ask/"

  private func parse(_ bytes: [UInt8]) -> HeadParse {
    bytes.withUnsafeBufferPointer { RequestHead.parse($0, unread: Self.beginning) }
  }

  @Test(
    "The rest of the target may be any visible character, and the path is the beginning alone",
    arguments: [
      "/ask/", "/ask/a", "/ask//", "/ask/../b", "/ask/a%2Fb", "/ask/a%252Fb", "/ask/%", "/ask/%zz",
      "/ask/a|\"<>\\^`{}#",
      "/ask/a?b|c", "/ask/%00%c0%ae", "/ask/\u{e4}?\u{1F600}",
    ])
  func unread(_ target: String) throws {
    let bytes = Array(request("GET \(target) HTTP/1.1").utf8)
    let head = try #require(parse(bytes).head)
    #expect(head.target == target && head.path == "/ask/" && head.query == nil)
    #expect(checkSplits(bytes, incomplete: .incomplete, parse: parse).broken == nil)
  }

  @Test("The rest of an absolute target is not read either")
  func absolute() throws {
    let bytes = Array(request("GET https://gate.example/ask//a|%2F HTTP/1.1").utf8)
    let head = try #require(parse(bytes).head)
    #expect(head.target == "/ask//a|%2F" && head.path == "/ask/")
    #expect(parse(Array(request("GET https://gate.example?/ask/| HTTP/1.1").utf8)).head?.path == "/")
    let other = Array(request("GET https://elsewhere.example/ask/ HTTP/1.1").utf8)
    #expect(parse(other) == .fault(HeadError.hostDiffers.requestError))
  }

  @Test(
    "Every other target is checked, and so is the rest for characters that no target has",
    arguments: [
      "/ask", "/ask|", "/ask%2Fa", "/Ask//", "/%61sk//", "/a/ask//", "//ask//", "/ask\u{e4}/", "/ask/\t", "/ask/\u{7f}",
      "/ask?|\u{1}",
    ])
  func checked(_ target: String) {
    let text = request("GET \(target) HTTP/1.1")
    #expect(parse(Array(text.utf8)) == RequestHead.parse(text))
  }

  @Test(
    "The path of a head with a fault is that of its first line, if it is certain",
    arguments: [
      ("GET /a?b HTTP/1.1\r\nX", "/a"), ("GET /a HTTP/1.1\r\n", "/a"), ("GET /a HTTP/1.1\r", nil),
      ("GET /a HTTP/1.0\r\nX", nil),
      ("GET  /a HTTP/1.1\r\n", nil), ("GET a HTTP/1.1\r\n", nil), ("GET /a b HTTP/1.1\r\n", nil), ("GET /a\r\n", nil),
      ("", nil), ("GET", nil), ("GET ", nil),
      // In normal form, wherever it can be read.
      ("GET /%61 HTTP/1.1\r\nX", "/a"), ("GET https://gate.example/a?b HTTP/1.1\r\nX", "/a"),
      ("GET https://gate.example HTTP/1.1\r\nX", "/"), ("GET https://gate example/a HTTP/1.1\r\nX", nil),
      ("GET /a/../b HTTP/1.1\r\nX", "/a/../b"),
      // A longer line does not change the path.
      ("GET /a?b", "/a"), ("GET /ask/" + String(repeating: "a", count: 17_000), "/ask/"), ("GET /ask", nil),
      ("GET /ask/\u{e4} HTTP/1.1\r\nX", "/ask/"),
      ("GET https://gate.example/ask//%zz HTTP/1.1\r\nX", "/ask/"),
    ])
  func faulty(_ text: String, _ path: String?) {
    let found = Array(text.utf8).withUnsafeBufferPointer { bytes in
      RequestHead.path(ofFaulty: bytes, unread: Self.beginning)
    }
    #expect(found == path)
  }
}

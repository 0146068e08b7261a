import AttestClient
import Commands
import Foundation
import Wire
import Testing
import Transport

@testable import attest

@Suite("Gate addresses")
struct GateURLTests {
  @Test(arguments: [
    ("wss://localhost:6200/", "localhost", 6200, "/", "localhost:6200"),
    ("wss://gate.example", "gate.example", 443, "/", "gate.example"),
    ("https://gate.example/a%20b?x=1&y", "gate.example", 443, "/a%20b?x=1&y", "gate.example"),
    ("wss://[::1]:6200/chat", "::1", 6200, "/chat", "[::1]:6200"),
    ("WSS://127.0.0.1:443", "127.0.0.1", 443, "/", "127.0.0.1"),
  ])
  func `An address is parsed into its parts`(text: String, host: String, port: UInt16, target: String, field: String)
    throws
  {
    let url = try GateURL(text)
    #expect(url.host == host)
    #expect(url.port == port)
    #expect(url.target == target)
    #expect(url.hostField == field)
  }

  @Test(arguments: ["wss", "https", "HTTPS"])
  func `The endpoints are at the root, for any scheme and path of the socket`(scheme: String) throws {
    let url = try GateURL("\(scheme)://gate.example:6200/chat?room=1")
    #expect(url.url.absoluteString == "wss://gate.example:6200/chat?room=1")
  }

  @Test(arguments: [
    "", "wss://", "wss:///x", "ws://localhost", "ftp://localhost", "localhost:6200", "wss://a@b/", "wss://a:secret@c/",
    "wss://host/#fragment", "wss://host:99999/", "wss://ho%2Fst/", "wss://host:0/", "wss://ho st/", "wss://[::zz]/",
    "wss://host/a b", "wss://host/ä", "wss://host/\u{0}", " wss://host/",
  ])
  func `Other text is refused`(text: String) {
    let failure = #expect(throws: Failure.self) { try GateURL(text) }
    #expect(failure?.status == .usage)
    #expect(failure?.message.contains("secret") != true)
  }
}

@Suite("Echo server addresses")
struct ListenAddressTests {
  @Test func `An address has an IP address and a port`() throws {
    #expect(try ListenAddress.parse("127.0.0.1:8080") == .ipv4([127, 0, 0, 1], port: 8080))
    #expect(try ListenAddress.parse("[::1]:0") == .ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0))
  }

  @Test(arguments: ["", ":", "8080", "localhost:80", "::1:80", "[::1]", "[127.0.0.1]:80", "1.2.3:80", "1.2.3.4:65536"])
  func `Other text is refused`(text: String) {
    #expect(throws: Failure.self) { try ListenAddress.parse(text) }
  }
}

@Suite("Input lines")
struct LineSplitterTests {
  @Test(arguments: [1, 2, 3, 100])
  func `The lines do not depend on the pieces of the input`(size: Int) {
    let text = "one\r\ntwo\n\n\r\nthree\rfour\nfive"
    var splitter = LineSplitter()
    var lines: [[UInt8]] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      lines += splitter.lines(in: Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    if let last = splitter.finish() { lines.append(last) }
    #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "two", "", "", "three\rfour", "five"])
    #expect(splitter.finish() == nil)
  }
}

@Suite("Input files")
struct InputFileTests {
  @Test(
    "A file that is too long is refused with the longest length in a unit that fits",
    arguments: [(64, "64 bytes"), (1 << 18, "256 KiB"), (1 << 20, "1 MiB")])
  func tooLong(largest: Int, text: String) {
    #expect(throws: Failure(.badData, "/dev/zero is longer than \(text)")) {
      try InputFile.read("/dev/zero", largest: largest)
    }
  }
}

@Suite("Device folder")
struct DeviceStoreTests {
  @Test func `The devices are in the user's data folder`() throws {
    #expect(try DeviceStore(environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"]).path == "/x/sallyport/attest/devices")
    let fallback = "/h/.local/share/sallyport/attest/devices"
    #expect(try DeviceStore(environment: ["XDG_DATA_HOME": "relative", "HOME": "/h"]).path == fallback)
    #expect(try DeviceStore(environment: ["XDG_DATA_HOME": "", "HOME": "/h"]).path == fallback)
    #expect(throws: Failure.self) { try DeviceStore(environment: [:]) }
  }
}

@Suite("Failures of registrations")
struct RegistrationFailureTests {
  @Test(
    arguments: [
      (GateRefusalCode.clockWrong, Status.retryLater, "set the clock of the gate's machine"),
      (.storeUnavailable, .unavailable, nil), (.receiptRefused, .refused, nil),
    ] as [(GateRefusalCode, Status, String?)])
  func `A wrong clock of the gate is no fault of the device`(code: GateRefusalCode, status: Status, hint: String?) {
    let refusal = GateRefusal(status: code.definition.status, code: code, text: code.definition.text)
    let failure = Failure(AttestError.registrationFailed(refusal))
    #expect(failure.status == status)
    #expect(hint == nil || failure.hint?.contains(hint ?? "") == true, "\(failure)")
  }
}

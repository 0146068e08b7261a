import Foundation
import QRCodes
import QREncoding
import TestSupport
import Testing

@Suite("QR codes", .timeLimit(.minutes(3)))
struct QRCodeTests {
  private static let uri =
    "otpauth://totp/Größe%20AG:jörg@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Größe%20AG"

  @Test(
    "zbarimg reads what is drawn",
    arguments: [
      "x", uri.addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed)!, String(repeating: "ab/12", count: 466),
    ])
  func zbar(_ text: String) async throws {
    try await Places.withTemporaryFolder { folder in
      for correction in QRCode.Correction.allCases where text.utf8.count < 1200 || correction == .medium {
        let code = try QRCode(text, correction: correction)
        try Data(code.png(scale: 4)).write(to: URL(fileURLWithPath: folder + "/code.png"))
        let run = try await ChildProcess.run(
          try Places.tool("zbarimg"), ["--raw", "-q", "--nodbus", folder + "/code.png"])
        #expect(run.output.joined(separator: "\n") == text)
        #expect(try QRReader.texts(in: code.png(scale: 4)) == [text])
      }
    }
  }

  @Test func `a symbol holds 2,331 bytes, and no more`() throws {
    #expect(try QRCode(String(repeating: "a", count: 2331)).size == 177)
    #expect(throws: QRCodeError.tooLong(bytes: 2332)) { try QRCode(String(repeating: "a", count: 2332)) }
    #expect(throws: QRCodeError.tooLong(bytes: 100_000)) { try QRCode(String(repeating: "a", count: 100_000)) }
    #expect(throws: QRCodeError.empty) { try QRCode("") }
  }

  @Test func `text and SVG have the modules of the symbol, with its margin`() throws {
    let code = try QRCode("hello")
    let side = code.size + 8
    for isInverted in [false, true] {
      let lines = code.terminalText(isInverted: isInverted).split(separator: "\n").map(Array.init)
      #expect(lines.count == (side + 1) / 2 && lines.allSatisfy { $0.count == side })
      for y in 0..<side {
        for x in 0..<side {
          let block = lines[y / 2][x]
          let isFull = block == "█" || block == (y % 2 == 0 ? "▀" : "▄")
          #expect(isFull == (code.isDark(x - 4, y - 4) == isInverted))
        }
      }
    }
    let svg = code.svg()
    #expect(svg.contains(#"viewBox="0 0 \#(side) \#(side)""#))
    let dark = (0..<code.size).flatMap { y in (0..<code.size).filter { code.isDark($0, y) }.map { ($0, y) } }
    #expect(svg.components(separatedBy: "h1v1h-1z").count - 1 == dark.count)
    #expect(dark.allSatisfy { svg.contains("M\($0.0 + 4) \($0.1 + 4)h1") })
  }

  @Test("D-050 what segno draws is read: sizes, corrections, colors, turns, JPEG, two in a picture")
  func segno() async throws {
    try await Places.withTemporaryFolder { folder in
      let script = """
        import segno, sys
        from PIL import Image, ImageOps
        text = sys.argv[1]
        for version in (5, 8, 15, 25, 40):
            for error in "LMQH":
                if version == 5 and error in "QH": continue
                try: code = segno.make(text, version=version, error=error, boost_error=False, micro=False)
                except segno.DataOverflowError: continue
                code.save(f"v{version}{error}.png", scale=4)
        code = segno.make(text, error="M")
        code.save("plain.png", scale=6)
        plain = Image.open("plain.png").convert("L")
        code.save("colors.png", scale=6, dark="darkblue", light="#ffe")
        code.save("clear.png", scale=6, light=None)
        for turn in (90, 180, 270): plain.rotate(turn, expand=True).save(f"turned{turn}.png")
        plain.convert("RGB").save("photo.jpg", quality=60)
        plain.convert("L").save("grey.jpg", quality=80)
        plain.convert("P").save("palette.png")
        other = segno.make("second", error="M", micro=False); other.save("second.png", scale=6)
        second = Image.open("second.png").convert("L")
        both = Image.new("L", (1400, 900), 255)
        both.paste(plain, (60, 40)); both.paste(second, (700, 500)); both.save("both.png")
        """
      let drawn = try await ChildProcess.run("/usr/bin/python3", ["-c", script, Self.uri], in: folder)
      try #require(drawn.exit == .code(0), "\(drawn.errors)")
      let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      #expect(files.count > 20)
      for file in files {
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file)))
        let read = Result { () throws(QRReaderError) in try QRReader.texts(in: bytes) }
        let expected = file == "both.png" ? [Self.uri, "second"] : file == "second.png" ? ["second"] : [Self.uri]
        #expect(read == .success(expected), "\(file): \(read)")
      }
    }
  }

  @Test func `a picture that is malformed, too large or without a code is refused`() throws {
    #expect(throws: QRReaderError.unknownFormat) { try QRReader.texts(in: []) }
    #expect(throws: QRReaderError.unknownFormat) { try QRReader.texts(in: Array("GIF89a".utf8)) }
    let png = try QRCode("text").png()
    #expect(throws: QRReaderError.damaged) { try QRReader.texts(in: Array(png.prefix(100))) }
    // The header alone, with a checksum of its own: 100,000 × 100,000 pixels.
    var huge = Array(png.prefix(33))
    huge.replaceSubrange(16..<24, with: [0, 1, 0x86, 0xA0, 0, 1, 0x86, 0xA0])
    var crc = UInt32.max
    for byte in huge[12..<29] {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    huge.replaceSubrange(29..<33, with: withUnsafeBytes(of: (~crc).bigEndian, Array.init))
    huge += png[33...]
    #expect(throws: QRReaderError.tooManyPixels(width: 100_000, height: 100_000)) { try QRReader.texts(in: huge) }
  }

  @Test func `no change of a file stops the process`() async throws {
    let png = try QRCode("a text that is changed").png(scale: 2)
    let jpeg = try await Places.withTemporaryFolder { folder in
      try Data(png).write(to: URL(fileURLWithPath: folder + "/a.png"))
      let script = "from PIL import Image; Image.open('a.png').convert('L').save('a.jpg')"
      _ = try await ChildProcess.run("/usr/bin/python3", ["-c", script], in: folder)
      return Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/a.jpg")))
    }
    var random = SeededGenerator(seed: 3)
    for file in [png, jpeg] {
      #expect(try QRReader.texts(in: file) == ["a text that is changed"])
      for length in stride(from: 0, to: file.count, by: 7) { _ = try? QRReader.texts(in: Array(file.prefix(length))) }
      for _ in 0..<1000 {
        var changed = file
        for _ in 0..<Int.random(in: 1...8, using: &random) {
          changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        _ = try? QRReader.texts(in: changed)
      }
    }
  }

  @Test("D-050 D-051 D-052 a scanner asks, says no, goes on after a useless code, and stops after a good one")
  func scanner() throws {
    var scanner = QRScanner<Int> { Int($0).map { .success($0) } ?? .failure(QRScannerFault("not a number")) }
    #expect(scanner.appear(.notDetermined) == [.requestPermission])
    #expect(scanner.appear(.denied) == [])
    if case .denied = scanner.state {} else { Issue.record("\(scanner.state)") }
    #expect(scanner.toggleTorch() == [])
    #expect(scanner.appear(.authorized) == [.start])
    #expect(scanner.toggleTorch() == [.setTorch(true)])
    #expect(scanner.see("x") == [])
    if case .invalid("not a number") = scanner.state {} else { Issue.record("\(scanner.state)") }
    #expect(scanner.see("5") == [.setTorch(false), .stop])
    if case .found(5) = scanner.state {} else { Issue.record("\(scanner.state)") }
    #expect(scanner.see("6") == [] && !scanner.isTorchOn)
  }
}

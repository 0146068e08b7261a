import Foundation
import QREncoding
import TestSupport
import Testing

@testable import QRCodes

@Suite struct PNGChunkTests {
  private func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

  private func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
    let content = Array(type.utf8) + data
    var crc = UInt32.max
    for byte in content {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    return number(data.count) + content + number(Int(~crc))
  }

  @Test func `compressed texts and profiles do not reach libpng`() async throws {
    // 8 MB of zeros in 8 KiB: 900 of them would be 7 GB.
    let script = "import zlib; print(zlib.compress(bytes(8_000_000), 9).hex())"
    let run = try await ChildProcess.run("/usr/bin/python3", ["-c", script])
    let digits = Array((run.output.first ?? "").utf8)
    let bomb = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
    #expect(bomb.count > 1000)
    let png = try QRCode("text").png()
    let text = chunk("zTXt", Array("a".utf8) + [0, 0] + bomb)
    let profile = chunk("iCCP", Array("a".utf8) + [0, 0] + bomb)
    // After the signature and the header.
    let file = png[..<33] + profile + [[UInt8]](repeating: text, count: 900).joined() + png[33...]
    #expect(try PNGChunks.needed(of: Array(file)) == PNGChunks.needed(of: png))
    #expect(try QRReader.texts(in: Array(file)) == ["text"])
  }

  @Test func `a picture has at most 8,192 chunks`() throws {
    let png = try QRCode("text").png()
    let empty = chunk("tEXt", [])
    for (count, isRead) in [(8000, true), (8200, false)] {
      let file = Array(png[..<33] + [[UInt8]](repeating: empty, count: count).joined() + png[33...])
      if isRead {
        #expect(try QRReader.texts(in: file) == ["text"])
      } else {
        #expect(throws: QRReaderError.tooManyChunks) { try QRReader.texts(in: file) }
      }
    }
  }

  @Test func `each prefix of a picture, and pixels with a length at both ends, are left to libpng`() throws {
    let png = try PNGChunks.needed(of: QRCode("text").png())
    for length in 8..<png.count { _ = try PNGChunks.needed(of: Array(png.prefix(length))) }
    #expect(png[37..<41].elementsEqual("IDAT".utf8))
    for length in [0x7FFF_FFFF, 0xFFFF_FFFF, 0x8000_0000] {
      var changed = png
      changed.replaceSubrange(33..<37, with: number(length))
      #expect(try PNGChunks.needed(of: changed) == changed)
      #expect(throws: QRReaderError.damaged) { try QRReader.texts(in: changed) }
    }
  }

  @Test func `libpng allocates nothing for a text that claims 1.3 GiB and is cut off`() throws {
    let header = Array(try QRCode("text").png().prefix(33))
    for rest in [[], Array("a".utf8), [UInt8](repeating: 0, count: 40)] {
      let file = header + number(0x5200_0000) + Array("zTXt".utf8) + rest
      #expect(try PNGChunks.needed(of: file) == header)
      #expect(throws: QRReaderError.damaged) { try QRReader.texts(in: file) }
    }
  }
}

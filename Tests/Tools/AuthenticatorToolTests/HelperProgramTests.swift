import Commands
import Foundation
import Glibc
import QRCodes
import QREncoding
import TestSupport
import Testing

@testable import authenticator

@Suite("Programs that authenticator starts", .timeLimit(.minutes(3)))
struct HelperProgramTests {
  private func run(_ script: String, input: [UInt8] = [], keepsOutput: Bool = true, within seconds: Int = 60)
    -> HelperProgram.Outcome?
  {
    HelperProgram.run(["/bin/sh", "-c", script], input: input, keepsOutput: keepsOutput, within: seconds)
  }

  @Test func `what a program reads and writes arrives whole, also beyond what a pipe holds`() throws {
    let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let outcome = try #require(run("exec cat", input: bytes))
    #expect(outcome.hasSucceeded && outcome.output == bytes)
    #expect(try #require(run("exec cat")).output.isEmpty)
    #expect(HelperProgram.run(["/none"], input: [], keepsOutput: true, within: 1) == nil)
  }

  @Test func `a program that does not read, or ends by a signal, is reported`() throws {
    let bytes = [UInt8](repeating: 7, count: 1_000_000)
    let closed = try #require(run("exec 0<&-; exit 0", input: bytes))
    #expect(closed.status == 0 && !closed.hasTakenInput && !closed.hasSucceeded)
    #expect(try #require(run("exit 3")).status == 3 << 8)
    #expect(try #require(run("kill -ABRT $$")).signal == SIGABRT)
  }

  @Test(
    "A program that never ends is killed at the end of its time",
    arguments: ["exec sleep 600", "exec 1>&-; exec sleep 600", "exec 0<&- 1>&-; exec sleep 600"])
  func endless(_ script: String) throws {
    for keepsOutput in [true, false] {
      let outcome = try #require(run(script, input: [1], keepsOutput: keepsOutput, within: 1))
      #expect(outcome.status == nil && !outcome.hasSucceeded)
    }
  }

  @Test func `what a program writes to standard error is shown without control characters, and bounded`() throws {
    var shown = ""
    func errors(_ script: String) throws -> String {
      shown = ""
      let outcome = HelperProgram.run(
        ["/bin/sh", "-c", script], input: [], keepsOutput: true, within: 60, errors: { shown += $0 })
      #expect(try #require(outcome).status == 0)
      return shown
    }
    // A character arrives in parts; an escape sequence, a carriage return, U+202E and a broken byte are replaced.
    #expect(
      try errors(#"printf 'one \303' >&2; sleep 0.1; printf '\251\n\033]0;x\007two\r\342\200\256\377' >&2"#)
        == "one \u{E9}\n\u{FFFD}]0;x\u{FFFD}two\u{FFFD}\u{FFFD}\u{FFFD}")
    let long = try errors("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2")
    #expect(long.hasPrefix(String(repeating: "x", count: 64 << 10) + "\n(the program's further messages"))
    #expect(long.utf8.count < 70_000)
    // What it leaves behind is not waited for, even if that writes for ever.
    #expect(try errors("yes >&2 & exit 0").utf8.count < 70_000)
    #expect(try errors("sleep 600 & echo left >&2; kill $!") == "left\n")
    #expect(try errors("exec 1>&-; sleep 0.2; echo late >&2") == "late\n")
  }

  @Test func `a process that a clipboard program leaves behind is not waited for`() throws {
    let outcome = try #require(run("cat >/dev/null; sleep 5 & exit 0", input: [1], keepsOutput: false))
    #expect(outcome.hasSucceeded)
  }

  @Test func `a process that has the output and outlives the program is not waited for`() throws {
    let outcome = try #require(run("sleep 600 & echo $!; printf rest"))
    let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
    #expect(outcome.hasSucceeded && lines.last == "rest")
    let left = try #require(lines.first.flatMap { pid_t($0) })
    #expect(kill(left, SIGKILL) == 0, "it may go on")
    // What the program has written before its end is read whole, also beyond what a pipe holds.
    let whole = try #require(run("sleep 600 & head -c 300000 /dev/zero; kill $!"))
    #expect(whole.hasSucceeded && whole.output.count == 300_000)
  }

  @Test func `the children of a program that is killed at the end of its time are killed too`() async throws {
    try await Places.withTemporaryFolder { folder in
      // Each has the lock of a file as long as it lives.
      let script = "(exec 9>'\(folder)/lock'; flock 9; : >'\(folder)/locked'; sleep 600) & sleep 600"
      let outcome = try #require(
        HelperProgram.run(
          ["/bin/sh", "-c", script], input: [], keepsOutput: true, within: 1, leadsGroup: true))
      #expect(outcome.status == nil)
      #expect(FileManager.default.fileExists(atPath: folder + "/locked"))
      let lock = try await ChildProcess.run("/usr/bin/flock", ["-w", "30", folder + "/lock", "true"])
      #expect(lock.exit == .code(0), "a child lives on")
    }
  }

  @Test func `signals are those of a new program`() throws {
    let outcome = try #require(run("cat /proc/self/status"))
    let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
    let ignored = try #require(lines.first { $0.hasPrefix("SigIgn:") }?.split(separator: "\t").last)
    // SIGPIPE has the number 13.
    #expect(try #require(UInt64(ignored, radix: 16)) & 1 << 12 == 0)
    #expect(lines.contains("SigBlk:\t0000000000000000"))
  }
}

@Suite("Pictures that keep the search busy", .timeLimit(.minutes(3)))
struct PictureReaderTests {
  private func reader(seconds: Int) throws -> PictureReader {
    PictureReader(program: try Places.product("authenticator"), seconds: seconds)
  }

  @Test func `a picture is read in another process, and its faults have their words and hints`() async throws {
    let reader = try reader(seconds: 60)
    #expect(try reader.texts(in: QRCode("a \u{202E} text\n\"").png(), at: "x") == ["a \u{202E} text\n\""])
    for (bytes, words, hint) in [
      (Array("GIF89a".utf8), "x: neither a PNG nor a JPEG file", nil as String?), ([], "x: neither", nil),
      (Array(try QRCode("text").png().dropLast(80)), "x: the picture is cut off", nil),
    ] {
      #expect {
        try reader.texts(in: bytes, at: "x")
      } throws: { error in
        "\(error)".contains(words) && "\(error)".contains("sharp") == (hint != nil)
      }
    }
    let white = try await Places.withTemporaryFolder { folder in
      let script = "from PIL import Image; Image.new('L', (200, 200), 255).save('white.png')"
      _ = try await ChildProcess.run("/usr/bin/python3", ["-c", script], in: folder)
      return Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/white.png")))
    }
    #expect {
      try reader.texts(in: white, at: "x")
    } throws: {
      "\($0)".contains("no QR code") && "\($0)".contains("sharp and straight")
    }
  }

  @Test func `a picture tiled with the corners of codes is ended with its process`() async throws {
    let tiles = try await Places.withTemporaryFolder { folder in
      let script = """
        from PIL import Image
        corner = Image.new("L", (9, 9), 255)
        for y in range(7):
            for x in range(7):
                ring = min(x, y, 6 - x, 6 - y)
                corner.putpixel((x + 1, y + 1), 255 if ring == 1 else 0)
        corner = corner.resize((27, 27), Image.NEAREST)
        picture = Image.new("L", (27 * 60, 27 * 60), 255)
        for y in range(60):
            for x in range(60): picture.paste(corner, (27 * x, 27 * y))
        picture.save("tiles.png")
        """
      let run = try await ChildProcess.run("/usr/bin/python3", ["-c", script], in: folder)
      try #require(run.exit == .code(0), "\(run.errors)")
      return Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/tiles.png")))
    }
    let reader = try reader(seconds: 1)
    #expect {
      try reader.texts(in: tiles, at: "tiles.png")
    } throws: {
      "\($0)".contains("tiles.png: the picture takes more than 1 s of processor time to read")
    }
  }
}

@Suite struct KeyReaderTests {
  private func keys(_ text: String...) -> [String] {
    var reader = KeyReader()
    return text.flatMap { reader.keys(in: Array($0.utf8)) }.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func `keys that arrive together are divided, and parts of one are joined`() {
    #expect(keys("\u{1B}[B\u{1B}[B\u{1B}OA") == ["\u{1B}[B", "\u{1B}[B", "\u{1B}OA"])
    #expect(keys("count\r") == ["count", "\r"] && keys("a\u{7F}b\u{15}") == ["a", "\u{7F}", "b", "\u{15}"])
    #expect(keys("\u{1B}") == ["\u{1B}"] && keys("\u{1B}\u{1B}") == ["\u{1B}", "\u{1B}"])
    #expect(keys("\u{1B}git") == ["\u{1B}", "git"] && keys("\u{1B}[5~\u{1B}[1;5A") == ["\u{1B}[5~", "\u{1B}[1;5A"])
    #expect(keys("\u{1B}[", "B") == ["\u{1B}[B"] && keys("\u{1B}O", "Ax") == ["\u{1B}OA", "x"])
    var reader = KeyReader()
    let umlaut = Array("aö".utf8)
    #expect(reader.keys(in: Array(umlaut[..<2])) == [[0x61]])
    #expect(reader.keys(in: [umlaut[2]]) == [Array("ö".utf8)])
    // A sequence without an end does not keep what follows.
    #expect(reader.keys(in: Array("\u{1B}[".utf8) + [UInt8](repeating: 0x30, count: 70)) == [])
    #expect(reader.keys(in: [0x0D]) == [[0x0D]])
  }

  @Test func `no bytes are lost or given twice, however they are cut`() {
    var random = SeededGenerator(seed: 4)
    let pieces = ["\u{1B}[A", "\u{1B}OB", "\r", "abc", "ö", "👨‍👩‍👧", "\u{7F}", "\u{1B}[1;5C", "\u{03}"].map {
      Array($0.utf8)
    }
    for _ in 0..<2000 {
      let bytes = (0..<8).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
      var reader = KeyReader()
      let whole = reader.keys(in: bytes)
      #expect(whole.flatMap { $0 } == bytes)
      var (cut, rest) = ([UInt8](), bytes[...])
      reader = KeyReader()
      while !rest.isEmpty {
        let count = min(rest.count, Int.random(in: 1...5, using: &random))
        cut += reader.keys(in: Array(rest.prefix(count))).flatMap { $0 }
        rest = rest.dropFirst(count)
      }
      #expect(cut == bytes)
    }
  }
}

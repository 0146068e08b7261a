import AuthenticatorVault
import Foundation
import TestSupport
import Testing

/// Folders of several machines, and a server with which each exchanges files. Where both changed a file, one of them
/// wins, and the other is kept in a second file, as synchronizers do.
private struct Folders {
  let folders: [URL]
  var server: [String: Data] = [:]
  /// What each folder had when it was last synchronized.
  var known: [[String: Data]]
  var conflicts = 0

  init(_ count: Int, in place: URL) throws {
    folders = (0..<count).map { place.appending(path: "\($0)") }
    for folder in folders { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
    known = Array(repeating: [:], count: count)
  }

  func files(_ machine: Int) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folders[machine].path) {
      files[name] = try Data(contentsOf: folders[machine].appending(path: name))
    }
    return files
  }

  mutating func synchronize(_ machine: Int, random: inout SeededGenerator) throws {
    let files = try files(machine)
    for name in Set(files.keys).union(server.keys).union(known[machine].keys).sorted() {
      let (mine, theirs, before) = (files[name], server[name], known[machine][name])
      var winner = mine == before ? theirs : mine
      if mine != theirs, mine != before, theirs != before {
        // A change wins over a removal.
        winner = mine ?? theirs
        if let mine, let theirs {
          conflicts += 1
          let isMine = Bool.random(using: &random)
          winner = isMine ? mine : theirs
          let copies = [
            "vault.sync-conflict-20261124-\(100_000 + conflicts)-ABCDEFG.x", "vault (\(conflicts)).x",
            "vault (conflicted copy 2026-11-24 \(100_000 + conflicts)).x", "vault-DESKTOP-\(1_000_000 + conflicts).x",
          ]
          try write(copies[conflicts % 4], isMine ? theirs : mine, machine)
        }
      }
      try write(name, winner, machine)
    }
  }

  private mutating func write(_ name: String, _ data: Data?, _ machine: Int) throws {
    let place = folders[machine].appending(path: name)
    if let data { try data.write(to: place) } else { try? FileManager.default.removeItem(at: place) }
    server[name] = data
    known[machine][name] = data
  }
}

@Suite struct FolderTests {
  private let key = VaultKey()

  private func exchange(_ vault: inout Vault, _ folder: URL) throws -> VaultExchange.Report {
    try VaultExchange.run(
      &vault, through: FolderStore(folder: folder.path), name: "vault.x",
      open: { data throws(VaultError) in try Vault(sealed: data, with: key) }, seal: { $0.sealed(with: key) },
      save: { _ in })
  }

  /// On a slow disk a thousand histories take minutes, because each step waits for it.
  private static let histories = ProcessInfo.processInfo.environment["SALLYPORT_TEST_EXHAUSTION"] == "1" ? 1000 : 200

  @Test func `in 200 random histories over real folders, or 1,000, all agree, and no entry is lost`() throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "sallyport-\(UUID())")
    defer { try? FileManager.default.removeItem(at: place) }
    var conflicts = 0
    for seed in 0..<Self.histories {
      var random = SeededGenerator(seed: UInt64(seed))
      var folders = try Folders(3, in: place.appending(path: "\(seed)"))
      var vaults = Array(repeating: Vault(), count: 3)
      var added: Set<String> = []
      var removed: Set<String> = []
      for step in 0..<30 {
        let machine = Int.random(in: 0..<3, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2:
          let new = VaultEntry(
            issuer: "\(step)", account: "", secret: Array("\(seed) \(step)".utf8), at: Int64(step))
          vaults[machine].add(new, at: Int64(step))
          added.insert(new.id)
        case 3:
          guard let victim = vaults[machine].entries.randomElement(using: &random) else { break }
          try vaults[machine].remove(victim.id, at: Int64(step))
          removed.insert(victim.id)
        case 4...5: _ = try exchange(&vaults[machine], folders.folders[machine])
        default: try folders.synchronize(machine, random: &random)
        }
      }
      for _ in 0..<3 {
        for machine in 0..<3 {
          try folders.synchronize(machine, random: &random)
          let report = try exchange(&vaults[machine], folders.folders[machine])
          #expect(report.left.isEmpty)
          try folders.synchronize(machine, random: &random)
        }
      }
      conflicts += folders.conflicts
      #expect(vaults[0] == vaults[1] && vaults[1] == vaults[2], "seed \(seed)")
      #expect(Set(vaults[0].entries.map(\.id)) == added.subtracting(removed), "seed \(seed)")
      let names = Set(try (0..<3).flatMap { try folders.files($0).keys })
      #expect(names == ["vault.x"], "seed \(seed): \(names)")
    }
    #expect(conflicts > Self.histories / 4)
  }

  @Test func `a copy that cannot be opened is named and left`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "sallyport-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var vault = Vault()
    vault.add(VaultEntry(issuer: "A", account: "", secret: [1], at: 1), at: 1)
    _ = try exchange(&vault, folder)
    let copy = folder.appending(path: "vault (1).x")
    try Data("not ours".utf8).write(to: copy)
    try Data("not ours".utf8).write(to: folder.appending(path: "notes.txt"))
    let report = try exchange(&vault, folder)
    #expect(report.left == [copy.path: .notAuthentic] && !report.hasSent && !report.hasReceived)
    #expect(FileManager.default.fileExists(atPath: copy.path))
    // A link could lead anywhere, and a pipe would block.
    try FileManager.default.removeItem(at: folder.appending(path: "vault.x"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending(path: "vault.x").path, withDestinationPath: "/etc/passwd")
    let store = FolderStore(folder: folder.path)
    let link = folder.appending(path: "vault.x").path
    #expect(throws: UbiquitousStoreError.symbolicLink(link)) { try store.data(forKey: "vault.x") }
    // Neither what is there nor nothing at its end is an absent vault, which would be replaced.
    for target in ["/etc/passwd", "none"] {
      try FileManager.default.removeItem(atPath: link)
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
      #expect(throws: UbiquitousStoreError.symbolicLink(link)) { try exchange(&vault, folder) }
      #expect(throws: UbiquitousStoreError.symbolicLink(link)) { try store.set(Data([1]), forKey: "vault.x") }
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == target)
    }
    // A pipe is no absent vault either.
    try FileManager.default.removeItem(atPath: link)
    #expect(mkfifo(link, 0o600) == 0)
    #expect(throws: UbiquitousStoreError.unavailable("\(link) is not a plain file")) { try exchange(&vault, folder) }
    #expect(throws: UbiquitousStoreError.self) {
      try FolderStore(folder: folder.path + "/none").set(Data(), forKey: "vault.x")
    }
  }

  @Test func `a damaged vault in the store stops the exchange, and is left as it is`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "sallyport-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var vault = Vault()
    vault.add(VaultEntry(issuer: "A", account: "", secret: [1], at: 1), at: 1)
    _ = try exchange(&vault, folder)
    var bytes = try Data(contentsOf: folder.appending(path: "vault.x"))
    bytes[20] ^= 1
    try bytes.write(to: folder.appending(path: "vault.x"))
    #expect(throws: VaultError.notAuthentic) { try exchange(&vault, folder) }
    #expect(try Data(contentsOf: folder.appending(path: "vault.x")) == bytes)
  }
}

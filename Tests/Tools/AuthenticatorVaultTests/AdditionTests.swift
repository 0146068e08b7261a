import AuthenticatorVault
import Foundation
import TestSupport
import Testing

private let entry = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 10)

/// A vault of its own, with a clock that is wrong by a constant, and what a person did that it knows of.
private struct Replica {
  enum Act: Hashable {
    case addition(entry: String, number: Int)
    case removal(entry: String, seen: Set<Int>)
  }

  var vault = Vault()
  var known: Set<Act> = []
  let skew: Int64

  mutating func merge(_ other: Replica) {
    vault.merge(other.vault)
    known.formUnion(other.known)
  }

  /// The numbers of the additions of an entry that are known here.
  func additions(of id: String) -> Set<Int> {
    Set(known.compactMap { if case .addition(id, let number) = $0 { number } else { nil } })
  }

  /// The entries of which a person made an addition that no removal has seen.
  var expected: Set<String> {
    var present: Set<String> = []
    for case .addition(let id, let number) in known {
      let isSeen = known.contains { if case .removal(id, let seen) = $0 { seen.contains(number) } else { false } }
      if !isSeen { present.insert(id) }
    }
    return present
  }
}

@Suite struct AdditionTests {
  @Test func `an import is kept although the entry was removed elsewhere before, whatever the clocks say`() throws {
    var phone = Vault()
    phone.add(entry, at: 10)
    try phone.remove(entry.id, at: 200)
    for (fileTime, now) in [(50, 300), (50, 150), (5, 90)] as [(Int64, Int64)] {
      var laptop = Vault()
      let imported = VaultEntry(issuer: "GitHub", account: "alice", secret: entry.secret, at: fileTime)
      #expect(laptop.add(imported, at: now) == .added)
      var joined = phone
      joined.merge(laptop)
      laptop.merge(phone)
      #expect(joined == laptop && joined[entry.id] != nil, "file \(fileTime), now \(now)")
      // Also after it was written and read again.
      let again = try Vault(json: joined.json())
      #expect(again == joined)
      // A removal that has seen both takes it away, everywhere.
      try laptop.remove(entry.id, at: 1)
      joined.merge(laptop)
      #expect(joined[entry.id] == nil)
    }
  }

  @Test func `an addition of an entry that is there raises its counter, and changes nothing else`() throws {
    func entry(_ counter: UInt64, account: String = "bob") -> VaultEntry {
      VaultEntry(issuer: "Bank", account: account, secret: [1, 2], kind: .hotp, counter: counter, at: 10)
    }
    var vault = Vault()
    #expect(vault.add(entry(5), at: 10) == .added)
    let before = vault
    for lower in [0, 5] as [UInt64] { #expect(vault.add(entry(lower), at: 20) == .alreadyThere("Bank: bob")) }
    #expect(vault == before)
    #expect(vault.add(entry(900, account: "eve"), at: 20) == .counterRaised("Bank: bob", to: 900))
    #expect(vault.entries.map(\.counter) == [900] && vault.entries.map(\.name) == ["Bank: bob"])
    // It is merged as each counter: the other device has it without an edit.
    var other = before
    other.merge(vault)
    #expect(other == vault && vault.entries[0].updatedAt == before.entries[0].updatedAt)
    // The counter of another kind has no part in its codes.
    vault.add(VaultEntry(issuer: "A", account: "", secret: [1, 2], at: 10), at: 10)
    let time = VaultEntry(issuer: "A", account: "", secret: [1, 2], counter: 7, at: 10)
    #expect(vault.add(time, at: 20) == .alreadyThere("A"))
  }

  @Test func `a restoration is kept although another device removed the entry again before it had seen it`() throws {
    var phone = Vault()
    phone.add(entry, at: 10)
    var laptop = phone
    try phone.remove(entry.id, at: 20)
    try phone.restore(entry.id, at: 30)
    try laptop.remove(entry.id, at: 40)
    laptop.merge(phone)
    phone.merge(laptop)
    #expect(phone == laptop && phone[entry.id] != nil)
  }

  @Test func `a removal of an earlier version of the program counts for all that was added until then`() throws {
    let old = #"{"removed":[{"id":"\#(entry.id)","removed":200}],"tokens":[],"version":1}"#
    var vault = try Vault(json: Data(old.utf8))
    #expect(String(decoding: vault.json(), as: UTF8.self) == old)
    var (before, after) = (Vault(), Vault())
    before.add(entry, at: 150)
    after.add(VaultEntry(issuer: "GitHub", account: "alice", secret: entry.secret, at: 50), at: 250)
    before.merge(vault)
    after.merge(vault)
    #expect(before[entry.id] == nil && after[entry.id] != nil)
    // Here it is known, and an addition is later.
    vault.add(entry, at: 150)
    #expect(vault[entry.id] != nil)
    #expect(try Vault(json: vault.json()) == vault)
  }

  @Test("In 1,000 random histories of three replicas with wrong clocks all agree, and only removals take away")
  func histories() throws {
    var kept = 0
    for seed in 0..<1000 {
      var random = SeededGenerator(seed: UInt64(seed))
      // Multiples of three, so that no two acts have the same time.
      var replicas = (0..<3).map { _ in Replica(skew: 3 * Int64.random(in: -500...500, using: &random)) }
      for step in 1...40 {
        let index = Int.random(in: 0..<3, using: &random)
        let secret = [UInt8](repeating: UInt8.random(in: 1...3, using: &random), count: 20)
        let now = max(0, 3000 + replicas[index].skew + Int64(9 * step)) + Int64(index)
        let new = VaultEntry(issuer: "", account: "", secret: secret, at: now)
        switch Int.random(in: 0..<6, using: &random) {
        case 0...1:
          // An import, with any time in the file.
          let old = VaultEntry(
            issuer: "", account: "", secret: secret, at: Int64.random(in: 0...now / 3, using: &random) * 3)
          if case .alreadyThere = replicas[index].vault.add(step % 2 == 0 ? new : old, at: now) { break }
          replicas[index].known.insert(.addition(entry: new.id, number: step))
        case 2:
          let seen = replicas[index].additions(of: new.id)
          guard (try? replicas[index].vault.remove(new.id, at: now)) != nil else { break }
          replicas[index].known.insert(.removal(entry: new.id, seen: seen))
        case 3:
          guard (try? replicas[index].vault.restore(new.id, at: now)) != nil else { break }
          replicas[index].known.insert(.addition(entry: new.id, number: step))
        case 4: replicas[index].vault = try Vault(json: replicas[index].vault.json())
        default: replicas[index].merge(replicas[Int.random(in: 0..<3, using: &random)])
        }
      }
      for index in 0..<3 { for other in 0..<3 { replicas[index].merge(replicas[other]) } }
      for index in 0..<3 { for other in 0..<3 { replicas[index].merge(replicas[other]) } }
      #expect(replicas.allSatisfy { $0.vault == replicas[0].vault && $0.vault.json() == replicas[0].vault.json() })
      let present = Set(replicas[0].vault.entries.map(\.id))
      #expect(present == replicas[0].expected, "seed \(seed)")
      kept += present.count
    }
    #expect(kept > 500 && kept < 3000)
  }
}

@Suite struct ImpossibleValueTests {
  private func vault(created: String = "10", updated: String? = nil, removed: String? = nil) throws -> Vault {
    let last = updated.map { #","updated":\#($0)"# } ?? ""
    let token = #"{"account":"alice","created":\#(created),"id":"\#(entry.id)","issuer":"GitHub","#
    let removal = removed.map { #""removed":[{"id":"\#(entry.id)","removed":\#($0)}],"# } ?? ""
    let text = #"{\#(removal)"tokens":[\#(token)"secret":"GEZDGNBVGY3TQOJQ"\#(last)}],"version":1}"#
    return try Vault(json: Data(text.utf8))
  }

  @Test(
    "An entry with an impossible time is kept, and can be changed, removed and restored",
    arguments: ["9223372036854775807", "-9223372036854775808", "9007199254740993", "-1", "9007199254740992"])
  func entries(_ time: String) throws {
    for var vault in [try vault(updated: time), try vault(created: time), try vault(created: time, updated: time)] {
      let other = vault
      try vault.edit(entry.id, at: 20) { $0.account = "bob" }
      var joined = other
      joined.merge(vault)
      // At the end of all times, two edits have the same one.
      if time != "9007199254740992" { #expect(joined[entry.id]?.account == "bob") }
      try vault.remove(entry.id, at: 30)
      #expect(vault[entry.id] == nil)
      joined.merge(vault)
      #expect(joined[entry.id] == nil)
      vault.purge(at: 40)
      try vault.restore(entry.id, at: 50)
      #expect(vault[entry.id] != nil)
      #expect(try Vault(json: vault.json()) == vault)
      joined.merge(vault)
      #expect(joined[entry.id] != nil)
    }
  }

  @Test(
    "A removal with an impossible time takes nothing away, and traps nothing",
    arguments: ["9223372036854775807", "-9223372036854775808", "9007199254740993", "-1"])
  func removals(_ time: String) throws {
    var vault = try vault(removed: time)
    #expect(vault[entry.id] != nil)
    vault.purge(at: 20)
    try vault.remove(entry.id, at: 20)
    #expect(vault[entry.id] == nil)
    try vault.restore(entry.id, at: 30)
    #expect(vault[entry.id] != nil)
    #expect(try Vault(json: vault.json()) == vault)
  }

  @Test func `a removal at the end of all times does not stop a restoration`() throws {
    var vault = try vault(removed: "9007199254740992")
    if vault[entry.id] != nil { try vault.remove(entry.id, at: 20) }
    vault.add(entry, at: 30)
    #expect(vault[entry.id] != nil)
    #expect(try Vault(json: vault.json()) == vault)
  }

  @Test func `an identifier is short and ASCII`() {
    for id in ["", String(repeating: "1", count: 65), "e\u{301}", "a b"] {
      let token = #"{"id":"\#(id)","created":1,"secret":"MFRGG"}"#
      #expect(throws: VaultError.malformed("id")) {
        try Vault(json: Data(#"{"tokens":[\#(token)],"version":1}"#.utf8))
      }
    }
  }

  @Test func `values that are nested deeper than can be written again are refused`() throws {
    func vault(_ depth: Int) throws -> Vault {
      let value = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      return try Vault(
        json: Data(
          #"{"tokens":[{"created":1,"id":"1","kept":\#(value),"secret":"MFRGG","type":"motp"}],"version":1}"#.utf8))
    }
    var good = try vault(100)
    try good.remove("1", at: 5)
    #expect(try Vault(json: good.json()) == good)
    for depth in [200, 480] {
      #expect(throws: VaultError.self, "\(depth)") { try vault(depth) }
    }
  }

  @Test func `a file whose slots ask for too much work is refused before any of it`() throws {
    let key = VaultKey()
    func file(_ slots: [PassphraseSlot]) -> Data {
      VaultFile(Vault(), key: key, slots: .init(slots, changedAt: 1)).bytes
    }
    let cheap = try PassphraseSlot(key, passphrase: "p", cost: 1024)
    #expect(try VaultFile(bytes: file(Array(repeating: cheap, count: 8))).slots.slots.count == 8)
    #expect(throws: VaultError.self) { try VaultFile(bytes: file(Array(repeating: cheap, count: 9))) }
    // Written by hand: a slot of that cost takes seconds to make.
    let text = String(decoding: file([cheap]), as: UTF8.self)
    #expect(throws: VaultError.self) {
      try VaultFile(bytes: Sealed.file(text.replacing(#""n":1024"#, with: #""n":1048576"#)))
    }
    let dear = try VaultFile(bytes: Sealed.file(text.replacing(#""n":1024"#, with: #""n":262144"#)))
    let five = file(Array(repeating: dear.slots.slots[0], count: 5))
    #expect(throws: VaultError.self) { try VaultFile(bytes: five) }
  }
}

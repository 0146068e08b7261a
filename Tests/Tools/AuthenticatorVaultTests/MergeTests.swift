import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing

/// A vault after `count` random changes of few entries at few times, so that conflicts are frequent.
func randomVault(_ random: inout SeededGenerator, changes count: Int = 12) -> Vault {
  var vault = Vault()
  for _ in 0..<count {
    let secret = [UInt8](repeating: UInt8.random(in: 1...6, using: &random), count: 20)
    let kind: VaultEntry.Kind = secret[0] == 1 ? .hotp : .totp(period: 30)
    let time = Int64.random(in: 1...8, using: &random)
    let entry = VaultEntry(issuer: "Service", account: "\(secret[0])", secret: secret, kind: kind, at: time)
    switch Int.random(in: 0..<6, using: &random) {
    case 0...1: vault.add(entry, at: time)
    case 2: try? vault.edit(entry.id, at: time) { $0.account = "name \(Int.random(in: 0..<3, using: &random))" }
    case 3: try? vault.remove(entry.id, at: time)
    case 4: try? vault.restore(entry.id, at: time)
    default: _ = try? vault.takeCounter(of: entry.id)
    }
  }
  return vault
}

@Suite struct MergeTests {
  private func joined(_ vaults: Vault...) -> Vault {
    var first = vaults[0]
    for vault in vaults.dropFirst() { first.merge(vault) }
    return first
  }

  @Test("D-046 T-39 a merge is commutative, associative and idempotent")
  func laws() {
    var random = SeededGenerator(seed: 21)
    for _ in 0..<3000 {
      let (a, b, c) = (randomVault(&random), randomVault(&random), randomVault(&random))
      #expect(joined(a, b) == joined(b, a))
      #expect(joined(joined(a, b), c) == joined(a, joined(b, c)))
      #expect(joined(a, a) == a && joined(joined(a, b), b) == joined(a, b))
      #expect(joined(a, b).json() == joined(b, a).json())
    }
  }

  private let entry = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 10)

  @Test func `the later edit wins, and a removal wins over an edit that is not later`() throws {
    var phone = Vault()
    phone.add(entry, at: 10)
    var laptop = phone
    try phone.edit(entry.id, at: 20) { $0.account = "from the phone" }
    try laptop.edit(entry.id, at: 30) { $0.account = "from the laptop" }
    #expect(joined(phone, laptop)[entry.id]?.account == "from the laptop")
    try phone.remove(entry.id, at: 30)
    #expect(joined(phone, laptop)[entry.id] == nil)
    try laptop.edit(entry.id, at: 31) { $0.account = "later" }
    #expect(joined(phone, laptop)[entry.id]?.account == "later")
  }

  @Test func `a device whose clock is behind loses no change`() throws {
    var vault = Vault()
    vault.add(entry, at: 1000)
    try vault.edit(entry.id, at: 5) { $0.account = "b" }
    #expect(vault[entry.id]?.updatedAt == 1001)
    try vault.remove(entry.id, at: 5)
    #expect(vault[entry.id] == nil)
    try vault.restore(entry.id, at: 5)
    #expect(vault[entry.id]?.account == "b")
  }

  @Test func `equal secrets of two devices are one entry, and an import is repeated without a change`() {
    var (phone, laptop) = (Vault(), Vault())
    phone.add(entry, at: 10)
    laptop.add(
      VaultEntry(issuer: "Git", account: "alice", secret: entry.secret, at: 20), at: 20)
    #expect(joined(phone, laptop).entries.count == 1)
    let before = phone
    #expect(phone.add(entry, at: 99) == .alreadyThere("GitHub: alice"))
    #expect(phone == before)
    // The same secret with other digits has other codes.
    let longer = VaultEntry(issuer: "GitHub", account: "alice", secret: entry.secret, digits: 8, at: 10)
    #expect(phone.add(longer, at: 10) == .added)
  }

  @Test func `a counter never decreases`() throws {
    let counter = VaultEntry(issuer: "A", account: "b", secret: [1, 2, 3], kind: .hotp, counter: 7, at: 1)
    var phone = Vault()
    phone.add(counter, at: 1)
    var laptop = phone
    #expect(try phone.takeCounter(of: counter.id) == 7)
    #expect(try phone.takeCounter(of: counter.id) == 8)
    try laptop.edit(counter.id, at: 50) {
      $0.issuer = "B"
      $0.counter = 2
    }
    let both = joined(laptop, phone)[counter.id]
    #expect(both?.counter == 9 && both?.issuer == "B")
    var exhausted = Vault()
    exhausted.add(VaultEntry(issuer: "", account: "", secret: [1], kind: .hotp, counter: .max, at: 1), at: 1)
    #expect(throws: VaultError.counterExhausted) { try exhausted.takeCounter(of: exhausted.entries[0].id) }
  }

  @Test func `a removed entry can be restored for 30 days, and no other device brings it back afterwards`() throws {
    var phone = Vault()
    phone.add(entry, at: 10)
    let old = phone
    try phone.remove(entry.id, at: 1000)
    #expect(phone.removed.map(\.entry.name) == ["GitHub: alice"])
    phone.purge(at: 1000 + Vault.restorableFor)
    #expect(phone.removed.count == 1)
    phone.purge(at: 1001 + Vault.restorableFor)
    #expect(phone.removed.isEmpty)
    #expect(throws: VaultError.notFound) { try phone.restore(entry.id, at: 2000) }
    #expect(joined(phone, old)[entry.id] == nil)
    // A new import is a wish of the user.
    #expect(phone.add(entry, at: 3000) == .restored)
    #expect(phone[entry.id] != nil)
  }
}

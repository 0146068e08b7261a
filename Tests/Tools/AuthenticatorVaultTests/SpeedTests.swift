import AuthenticatorVault
import Foundation
import Glibc
import OneTimePasswords
import Testing

#if !DEBUG
  /// The figures of the article Authenticator, on optimized code. Machines are shared, so a test allows three times as
  /// much; it prints what it measured.
  @Suite(
    .enabled("scripts/test --speed runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_SPEED"] != nil })
  struct SpeedTests {
    private func vault(_ count: Int, from first: Int = 0) -> Vault {
      var vault = Vault()
      for number in first..<first + count {
        let secret = (0..<20).map { UInt8(truncatingIfNeeded: number >> ($0 % 3 * 8) &+ $0) }
        let entry = VaultEntry(
          issuer: "Service \(number)", account: "user\(number)@example.com", secret: secret, at: 1_750_000_000_000)
        vault.add(entry, at: 1_750_000_000_000)
      }
      return vault
    }

    /// The processor time of the calling thread. Unlike the time of day, it does not include that of other processes.
    private var processorTime: Duration {
      var spent = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent)
      return Duration.seconds(spent.tv_sec) + Duration.nanoseconds(spent.tv_nsec)
    }

    /// The shortest of several runs.
    private func time(_ name: String, _ body: () throws -> Void) rethrows -> Duration {
      var best = Duration.seconds(100)
      for _ in 0..<5 {
        let start = processorTime
        try body()
        best = min(best, processorTime - start)
      }
      print("\(name): \(best)")
      return best
    }

    @Test func `200,000 codes a second`() {
      let secret = Array("12345678901234567890".utf8)
      var lengths = 0
      let taken = time("200,000 codes") {
        for counter in UInt64(0)..<200_000 {
          lengths += OneTimePassword.standard.code(secret: secret, counter: counter).utf8.count
        }
      }
      #expect(lengths == 5 * 1_200_000 && taken < .seconds(3))
    }

    @Test func `1,000 entries are opened in 50 ms`() throws {
      let key = VaultKey()
      let slots = VaultFile.Slots([try PassphraseSlot(key, passphrase: "p", cost: 1024)], changedAt: 1)
      let bytes = VaultFile(vault(1000), key: key, slots: slots).bytes
      let taken = try time("1,000 entries opened") {
        let opened = try VaultFile(bytes: bytes).vault(key: key)
        #expect(opened.entries.count == 1000)
      }
      #expect(taken < .milliseconds(150))
    }

    @Test func `two vaults of 5,000 are merged in 300 ms`() {
      let (first, second) = (vault(5000), vault(5000, from: 2500))
      let taken = time("5,000 and 5,000 entries merged") {
        var merged = first
        merged.merge(second)
        #expect(merged.entries.count == 7500)
      }
      #expect(taken < .milliseconds(900))
    }
  }
#endif

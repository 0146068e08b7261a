import Glibc
import TestSupport
import Testing

/// Keeps the fuzz targets sound between two runs of `scripts/fuzz`.
@Suite("Fuzz targets", .timeLimit(.minutes(5)))
struct SeedTests {
  @Test("The invariants of each target hold for its seeds, of which it accepts some")
  func seeds() async throws {
    try await Places.withTemporaryFolder { folder in
      // This suite alone reads the variable.
      setenv("SALLYPORT_FUZZ_FOLDER", folder, 1)
      for target in FuzzTarget.all {
        let seeds = try target.seeds()
        var accepted = 0
        for seed in seeds { accepted += try target.accepts(seed) ? 1 : 0 }
        #expect(accepted > 0 && seeds.allSatisfy { $0.count <= target.longest }, "\(target.name)")
      }
    }
  }

  @Test("Each target has a name of its own")
  func names() { #expect(Set(FuzzTarget.all.map(\.name)).count == FuzzTarget.all.count) }
}

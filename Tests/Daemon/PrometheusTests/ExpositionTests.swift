import Observability
import Testing

@Suite("Metrics")
struct ExpositionTests {
  private let registry = MetricsRegistry()

  private func text() async -> String { String(decoding: await registry.exposition(), as: UTF8.self) }

  @Test("Counters of a family are distinguished by their labels and sorted")
  func counters() async {
    let family = registry.counters("refusals_total", "Requests that were refused.", labels: ["code", "status"])
    family.counter("nonce_used", "401").add()
    family.counter("key_refused", "401").add(2)
    family.counter("nonce_used", "401").add()
    #expect(
      await text() == """
        # HELP refusals_total Requests that were refused.
        # TYPE refusals_total counter
        refusals_total{code="key_refused",status="401"} 2
        refusals_total{code="nonce_used",status="401"} 2

        """)
  }

  @Test("A histogram counts the values at or below each bound, and all values")
  func histogram() async {
    let bounds: [Duration] = [.milliseconds(1), .milliseconds(500)]
    let histogram = registry.histograms("wait_seconds", "Time.", labels: ["for"], bounds: bounds).histogram("store")
    for duration in [Duration.microseconds(1), .milliseconds(1), .milliseconds(2), .seconds(2)] {
      histogram.observe(duration)
    }
    #expect(
      await text() == """
        # HELP wait_seconds Time.
        # TYPE wait_seconds histogram
        wait_seconds_bucket{for="store",le="0.001"} 2
        wait_seconds_bucket{for="store",le="0.5"} 3
        wait_seconds_bucket{for="store",le="+Inf"} 4
        wait_seconds_sum{for="store"} 2.003001
        wait_seconds_count{for="store"} 4

        """)
  }

  @Test("A callback's values are read at each exposition, and no text can leave its line")
  func values() async {
    registry.values("up", "a\\b\nc", labels: ["name"]) { [Sample(1.5, "\"\\\n"), Sample(.infinity, "é")] }
    #expect(
      await text() == """
        # HELP up a\\\\b\\nc
        # TYPE up gauge
        up{name="\\"\\\\\\n"} 1.5
        up{name="é"} +Inf

        """)
  }

  @Test("No concurrent increment is lost")
  func concurrency() async {
    let family = registry.counters("things_total", "Things.")
    let histogram = registry.histograms("things_seconds", "Things.", bounds: [.seconds(1)]).histogram()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<1000 {
            family.counter().add()
            histogram.observe(.milliseconds(1))
          }
        }
      }
    }
    let text = await text()
    #expect(text.contains("things_total 8000\n") && text.contains("things_seconds_count 8000\n"))
  }
}

public import Observability
internal import Transport

/// `/metrics`, for Prometheus.
public struct MetricsResource: AdminResource {
  private let registry: MetricsRegistry

  public init(_ registry: MetricsRegistry) { self.registry = registry }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/metrics", "Returns all metrics in the Prometheus text format.",
        answers: AdminAnswers(200, types: ["text/plain"])
      ) {
        _ throws(AdminError) in
        Response(
          status: 200,
          headers: HeaderFields([.init(name: "Content-Type", value: "text/plain; version=0.0.4; charset=utf-8")]),
          body: await registry.exposition())
      }
    ]
  }
}

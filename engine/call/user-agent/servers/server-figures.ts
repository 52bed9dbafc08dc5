/** Figures of the embedded SIP server; with `DRACHTIO_URL` there is none. */
interface EmbeddedServer {
  readonly load: { readonly lagMs: number; readonly share: number }
  readonly refusedConnections: number
  readonly refusedCalls: number
  readonly withLineFeeds: number
  readonly captured: { readonly sent: number; readonly dropped: number } | undefined
  stats(): Readonly<Record<string, number>>
}

export function sipFigures(server: EmbeddedServer | undefined): Readonly<Record<string, number>> {
  const { lagMs = 0, share = 1 } = server?.load ?? {}
  return {
    ...prefixed('sip', server?.stats() ?? {}),
    sip_connections_refused_total: server?.refusedConnections ?? 0,
    sip_refused_by_overload_total: server?.refusedCalls ?? 0,
    sip_bare_line_feeds_total: server?.withLineFeeds ?? 0,
    ...(server?.captured && {
      hep_packets_total: server.captured.sent,
      hep_packets_dropped_total: server.captured.dropped,
    }),
    sip_lag_seconds: lagMs / 1_000,
    sip_admitted_ratio: share,
  }
}

export const prefixed = (prefix: string, values: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value]))

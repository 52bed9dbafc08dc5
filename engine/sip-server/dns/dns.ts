/** The records of DNS that lead to a SIP server, and who is asked for them. */

/** RFC 3403. */
export interface NaptrRecord {
  readonly order: number
  readonly preference: number
  readonly flags: string
  readonly service: string
  readonly replacement: string
}

/** Records of one name; none: there are none, or no server has answered. */
export interface DnsAnswer<T> {
  readonly records: readonly T[]
  readonly ttlMs: number
  /** False: no server has answered, so that former records may still be true. */
  readonly isAnswer: boolean
}

/** A source of records. Never rejects; each answer comes within a bounded time. */
export interface Dns {
  naptr(name: string): Promise<DnsAnswer<NaptrRecord>>
  srv(name: string): Promise<DnsAnswer<SrvRecord>>
  /** IPv4 and IPv6, in the order of preference. */
  addresses(name: string): Promise<DnsAnswer<string>>
}

/** A record is queried again after an hour, however long its time to live. */
export const maxTtlMs = 3_600_000

/** The order in which SRV records are tried: RFC 2782, "Priority" and "Weight". */

export interface SrvRecord {
  readonly name: string
  readonly port: number
  readonly priority: number
  readonly weight: number
}

/** Log lines for syslog, by UDP (RFC 5424, RFC 5426). */
import type { Log } from '../options.ts'
import { DatagramSender } from '../transport/datagram-sender.ts'

export interface SyslogOptions {
  readonly host: string
  readonly port: number
  /** 0 to 7: local0 to local7. */
  readonly facility: number
  readonly hostName: string
  readonly pid: number
}

/** RFC 5424 §6.2.1. */
const severities = { error: 3, warn: 4, info: 6, debug: 7 } as const
const local0 = 16
/** What each receiver should take (RFC 5424 §6.1). */
const maxBytes = 2_048

/** One message. Pure. */
export function syslogMessage(
  { facility, hostName, pid }: Omit<SyslogOptions, 'host' | 'port'>,
  now: number,
  ...[level, message, fields]: Parameters<Log>
): Buffer {
  const priority = (local0 + facility) * 8 + severities[level]
  const details = fields === undefined ? '' : ` ${JSON.stringify(fields)}`
  const head = `<${priority}>1 ${new Date(now).toISOString()} ${hostName} tollgate-sip-server ${pid} - -`
  return Buffer.from(`${head} ${message}${details}`.replaceAll(/[\r\n]+/g, ' ')).subarray(
    0,
    maxBytes,
  )
}

export interface Syslog {
  readonly log: Log
  readonly stop: () => void
}

export function openSyslog(options: SyslogOptions, now: () => number): Syslog {
  const sender = new DatagramSender(options.host, options.port)
  return {
    log: (...line) => sender.send(syslogMessage(options, now(), ...line)),
    stop: () => sender.stop(),
  }
}

/** The six fields that describe one SIP message on its way to an application, and their wire form. */
import type { Protocol } from '../flow.ts'

export interface Meta {
  /** `network`: received from a peer. `application`: sent by this server. */
  readonly source: 'network' | 'application'
  /** Size of the SIP message in bytes. */
  readonly bytes: number
  readonly protocol: Protocol
  /** The peer for `network`, our own listener for `application`; IPv6 without brackets. */
  readonly address: string
  readonly port: number
  /** Milliseconds since the epoch, UTC. */
  readonly time: number
}

const millisecondsPerDay = 86_400_000

/** `source|bytes|protocol|address|port|time` */
export const encodeMeta = (meta: Meta): string =>
  `${meta.source}|${meta.bytes}|${meta.protocol}|${meta.address}|${meta.port}|${encodeTime(meta.time)}`

let formattedTime = Number.NaN
let formatted = ''

/**
 * `HH:MM:SS.uuuuuu`, UTC. Under load many messages carry the same millisecond: the last answer is
 * kept, which is the only state of this file and not visible from outside.
 */
export function encodeTime(time: number): string {
  if (time === formattedTime) return formatted
  const ofDay = time % millisecondsPerDay
  const hours = Math.floor(ofDay / 3_600_000)
  const minutes = Math.floor(ofDay / 60_000) % 60
  const seconds = Math.floor(ofDay / 1_000) % 60
  const micros = Math.floor((ofDay % 1_000) * 1_000)
  formattedTime = time
  formatted = `${pad(hours, 2)}:${pad(minutes, 2)}:${pad(seconds, 2)}.${pad(micros, 6)}`
  return formatted
}

const pad = (value: number, width: number): string => String(value).padStart(width, '0')

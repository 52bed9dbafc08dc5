/** Where requests to a carrier's gateway go. */
import { isIP } from 'node:net'
import { hostPort } from '../sip-server/message/index.ts'
import type { GatewayRecord, Transport } from './routing-records.ts'

/** Port 0 is the default one of the transport, RFC 3261 §19.1.2. */
export function gatewayPort({
  port,
  transport,
}: Pick<GatewayRecord, 'port' | 'transport'>): number {
  return port === 0 ? defaultPort(transport) : port
}

type Place = Pick<GatewayRecord, 'host' | 'port' | 'transport'>

/**
 * `sip:<host>:<port>;transport=udp`. A name without a port stays without: the SRV records of the
 * carrier say which hosts and ports, if it has any (RFC 3263 §4.2).
 */
export function gatewayUri(gateway: Place): string {
  const { host, transport } = gateway
  const port = isByRecords(gateway) ? 0 : gatewayPort(gateway)
  return `sip:${hostPort(host, port)};transport=${transport}`
}

/** The names behind which the addresses of a gateway stand: its host, and where its SRV records are. */
export function gatewayNames(gateway: Place): readonly string[] {
  const { host, transport } = gateway
  return isByRecords(gateway) ? [host, `${srvPrefix[transport]}.${host}`] : [host]
}

const isByRecords = ({ host, port }: Place): boolean => port === 0 && isIP(host) === 0

const srvPrefix = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' } as const

const defaultPort = (transport: Transport) => (transport === 'tls' ? 5_061 : 5_060)

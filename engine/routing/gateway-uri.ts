/** Where requests to a carrier's gateway go. */
import type { GatewayRecord, Transport } from './routing-records.ts'

/** Port 0 is the default one of the transport, RFC 3261 §19.1.2. */
export function gatewayPort({
  port,
  transport,
}: Pick<GatewayRecord, 'port' | 'transport'>): number {
  return port === 0 ? defaultPort(transport) : port
}

/** `sip:<host>:<port>;transport=udp` */
export function gatewayUri(gateway: Pick<GatewayRecord, 'host' | 'port' | 'transport'>): string {
  const { host, transport } = gateway
  const name = host.includes(':') ? `[${host}]` : host
  return `sip:${name}:${gatewayPort(gateway)};transport=${transport}`
}

const defaultPort = (transport: Transport) => (transport === 'tls' ? 5_061 : 5_060)

/** Where a message came from, as one text. */
import type { SipRequest, SipResponse } from '../srf/drachtio.ts'

type Source = Pick<SipRequest | SipResponse, 'source_address' | 'source_port'>

/** `address:port`; an IPv6 address stands in brackets. */
export const peerAddress = ({ source_address: address, source_port: port }: Source): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

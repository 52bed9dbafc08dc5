/** Where a message came from, as one text. */
interface Source {
  readonly source_address: string
  readonly source_port: number
}

/** `address:port`; an IPv6 address stands in brackets. */
export const peerAddress = ({ source_address: address, source_port: port }: Source): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

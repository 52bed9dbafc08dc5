/** Where SIP is served. */
export interface SipListener {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** Reads what a drachtio-server says, such as `udp/192.0.2.1:5060` or `tcp/[2001:db8::1]:5060`. */
export function parseListener(text: string): SipListener {
  const [, protocol = 'udp', host = text, port = '5060'] =
    /^(\w+)\/\[?([^\]]*)\]?:(\d+)$/.exec(text) ?? []
  return { protocol, host, port: Number(port) }
}

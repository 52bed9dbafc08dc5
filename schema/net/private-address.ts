/** Addresses that lead nowhere from outside. Pure. */
import { networkCheck } from './ip-address.ts'

/** Whether an address is private and not the one that a packet came from. Addresses of one machine lead to each other. */
export const isHiddenFrom = (address: string, source: string): boolean =>
  address !== source && isPrivate(address) && !(isLoopback(address) && isLoopback(source))

const isLoopback = networkCheck(['127.0.0.0/8', '::1'])

/** RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291. */
const isPrivate = networkCheck([
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['127.0.0.0/8', '::1', 'fc00::/7', 'fe80::/10'],
])

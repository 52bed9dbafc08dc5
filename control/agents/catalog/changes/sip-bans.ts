/** The tool that keeps an address from being heard. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { DAY_MS } from '../../../../schema/clock.ts'
import { timeToText } from '../../../../schema/columns.ts'
import { sourceIn, sourceKey } from '../../../../schema/net/source-address.ts'
import { wrongTenant } from '../../../auth/tenants.ts'
import { setBan, stateBeforeBan } from '../../../resources/kinds/sip-ban-kind.ts'
import { defineChange } from '../../change-tool.ts'
import { quoted } from '../../../http/clean-text.ts'
import { time } from '../shapes.ts'

/** Without a duration. */
const USUAL_MS = DAY_MS
/** The platform takes the ban back; the guard ends it by itself if that fails. */
const SPARE_MS = 60_000

/** As sources of IPv6 are listed. */
const isNetwork = (text: string): boolean => text.endsWith('/64') && isIP(text.slice(0, -3)) === 6

const address = z
  .string()
  .max(60)
  .refine((text) => isIP(text) !== 0 || isNetwork(text), 'Expected an IP address')
  .describe('An IPv4 or IPv6 address; of IPv6 its /64 network is banned.')

export const banAddress = defineChange({
  name: 'ban_address',
  title: 'Ban an address',
  description:
    'Drops all SIP packets of an address, on all nodes: for one that guesses passwords or scans. ' +
    'A day, unless duration says otherwise. Carriers and nodes are heard all the same. Phones behind the same address are not heard.',
  effect: 'destroys',
  reason: 'required',
  expires: true,
  scopes: ['guard:write'],
  input: z.strictObject({ address }),
  output: z.object({
    address: z.string(),
    state: z.enum(['banned', 'heard']),
    until: time.nullable(),
  }),
  plan({ address: given }, use) {
    if (use.principal.tenantId !== null) throw wrongTenant()
    const source = sourceIn(given)
    const until = (use.expiresAt ?? use.now() + USUAL_MS) + SPARE_MS
    const before = stateBeforeBan(source, until, use)
    const calls = use.engine.calls.list().filter(({ peers }) => isOf(source, peers.caller))
    return {
      target: { kind: 'sip_ban' as const, id: source },
      before,
      after: 'banned' as const,
      effect:
        before === 'banned'
          ? `Nothing changes: ${quoted(source)} is banned already, and not for a shorter time.`
          : `SIP packets of ${quoted(source)} are dropped, whichever phone there sends them.`,
      affected: { live_calls: calls.length },
      // What is banned for longer by REST has no duration that could be kept.
      undo: before === 'banned' ? ('none' as const) : ('restores' as const),
      preview: { address: source, state: before, until: null },
      async apply() {
        await setBan(source, 'banned', until - use.now(), use)
        return { address: source, state: 'banned' as const, until: timeToText(until) }
      },
    }
  },
})

/** Of `host:port`. */
const isOf = (source: string, peer: string | null): boolean =>
  peer !== null && sourceKey(peer.replace(/:\d+$/, '').replace(/[[\]]/g, '')) === source

/** Tools that brake calls to a prefix, and that ban an address. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import { sourceIn, sourceKey } from '../../../schema/net/ip-address.ts'
import { wrongTenant, requestScope } from '../../auth/tenants.ts'
import { quoted } from '../../http/clean-text.ts'
import { text } from '../../http/fields.ts'
import {
  spendingCapBody,
  spendingCapView,
  capQuestion,
  listSpendingCaps,
} from '../../resources/spending-cap-view.ts'
import { planSpendingCap, planRemoval } from '../../resources/spending-cap-plan.ts'
import { banReasons, bansAndLocks, setBan, stateBeforeBan } from '../../resources/ban-routes.ts'
import {
  cut,
  defineChange,
  defineTool,
  endOfPage,
  MAX_ROWS,
  pageInput,
  lastingText,
  pageOutput,
  sliceOf,
  time,
} from './tool.ts'
import { chargingOf } from './customers.ts'

export const setSpendGuard = defineChange({
  name: 'set_spend_guard',
  title: 'Set a spend guard',
  description:
    'Stops (block) or limits (cap) spending on numbers with a prefix. ' +
    'Of a customer, an extension or a tenant, from the next call, on all instances. ' +
    'Emergency calls go on. Live calls go on, and count on a cap, unless end_live_calls is true. ' +
    'The first step against an expensive destination: do a dry run, set it with a ' +
    'duration, and tell a person. remove_spend_guard or undo_change takes it off.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['guard:write'],
  input: spendingCapBody,
  output: z.object({ guard: spendingCapView }),
  plan: (body, use) => planSpendingCap(body, { ...use, ocs: chargingOf(use) }),
})

export const removeSpendGuard = defineChange({
  name: 'remove_spend_guard',
  title: 'Remove a spend guard',
  description: 'Takes a spend guard off. list_spend_guards shows them. Repeating it has no effect.',
  effect: 'changes',
  reason: 'required',
  scopes: ['guard:write'],
  input: z.strictObject({ guard_id: z.uuid() }),
  output: z.object({ guard: spendingCapView }),
  plan: ({ guard_id: capUuid }, use) =>
    planRemoval(capUuid.toLowerCase(), { ...use, ocs: chargingOf(use) }),
})

export const listSpendGuards = defineTool({
  name: 'list_spend_guards',
  title: 'List spend guards',
  description:
    'Lists the spend guards and what was used of each cap. The newest first. Give ' +
    'customer, extension or tenant for those of one.',
  effect: 'reads',
  scopes: ['guard:read'],
  input: capQuestion.extend({
    state: z.enum(['active', 'all']).default('active').describe('all: of the last 30 days, too.'),
    ...pageInput(MAX_ROWS, 50),
  }),
  output: z.object({ guards: z.array(spendingCapView), ...pageOutput }),
  async run({ state, limit, cursor, ...subject }, use) {
    chargingOf(use)
    const page = { limit, cursor }
    const slice = { ...sliceOf(page), isWithEnded: state === 'all' }
    const { store, principal, now } = use
    const { guards, total } = await listSpendingCaps(
      store,
      subject,
      slice,
      requestScope(principal, now),
    )
    return { guards: [...guards], ...endOfPage(page, guards.length, total) }
  },
})

export const listBans = defineTool({
  name: 'list_bans',
  title: 'List bans',
  description:
    'Lists banned addresses and locked accounts. ' +
    'Accounts are locked at an address after wrong passwords. ' +
    'With why, since when, until when; ban_address bans one.',
  effect: 'reads',
  scopes: ['guard:read'],
  input: z.strictObject({
    address: text(60).optional().describe('Its start.'),
    ...pageInput(MAX_ROWS, 50),
  }),
  output: z.object({
    bans: z.array(
      z.object({
        source: z.string(),
        account: z.string().nullable().describe('The locked one; null: the address is banned.'),
        reason: z.enum(banReasons),
        since: time,
        until: time,
        dropped_packets: z.int(),
      }),
    ),
    ...pageOutput,
  }),
  run({ address: start = '', ...page }, { engine, principal }) {
    if (principal.tenantId !== null) throw wrongTenant()
    const bans = bansAndLocks(engine).filter(({ source }) => source.startsWith(start))
    const listed = [...cut(bans, page)]
    return { bans: listed, ...endOfPage(page, listed.length, bans.length) }
  },
})

/** How long a ban lasts that names no duration. */
const USUAL_MS = DAY_MS
/** The platform takes the ban back; the guard ends it by itself if that fails. */
const SPARE_MS = 60_000

/** Whether a text is a network, as sources of IPv6 are listed. */
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
    'Drops all SIP packets of an address. On all instances: for one that guesses passwords ' +
    'or scans. ' +
    'A day, unless duration says otherwise. Carriers and nodes are heard all the same. ' +
    'Phones behind the same address are not heard.',
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
          : `SIP packets of ${quoted(source)} are ` +
            `dropped${use.lasting || lastingText(USUAL_MS / 1_000)}, whichever phone there ` +
            'sends them.',
      affected: { live_calls: calls.length },
      // A longer ban by REST exceeds the durations of this tool.
      undo: before === 'banned' ? ('none' as const) : ('restores' as const),
      preview: { address: source, state: before, until: null },
      async apply() {
        await setBan(source, 'banned', until - use.now(), use)
        return { address: source, state: 'banned' as const, until: timeToText(until) }
      },
    }
  },
})

/** Whether `peer`, as `host:port`, is at this source. */
const isOf = (source: string, peer: string | null): boolean =>
  peer !== null && sourceKey(peer.replace(/:\d+$/, '').replace(/[[\]]/g, '')) === source

/** Tools for carriers: since when and why one is down; take one out of service, and back. */
import { z } from 'zod'
import { quoted } from '../../http/clean-text.ts'
import { reference, text } from '../../http/fields.ts'
import { trunksOf, trunksView } from '../../observe/causes/trunks.ts'
import { badReference, resolve } from '../../resources/references.ts'
import { readApart } from '../../../schema/sql/query.ts'
import { recentCalls } from '../../reports/recent-calls.ts'
import { cut, defineChange, defineTool, endOfPage, pageInput } from './tool.ts'
import { requestScope } from '../../auth/tenants.ts'
import { countsFrom } from '../../instances/other-instances.ts'
import { carrierKind } from '../../resources/kinds.ts'
import { carriers } from '../../resources/carriers.ts'
import { storeOf } from '../../resources/resource.ts'

export const listTrunks = defineTool({
  name: 'list_trunks',
  title: 'List trunks',
  description:
    'Lists carriers, those that are down first: since when and why. ' +
    'With registration, gateways, live calls and their limits, the answered part of the ' +
    'calls of the last hour, and the last failure.',
  effect: 'reads',
  scopes: ['carriers:read'],
  input: z.strictObject({
    search: text(100).optional().describe('Part of the name.'),
    troubled: z.boolean().default(false).describe('Only those that are not up.'),
    ...pageInput(50, 10),
  }),
  output: trunksView,
  async run({ search, troubled, ...page }, use) {
    const { store, engine, peers, principal } = use
    const { tenantId } = principal
    const list = () => trunksOf({ store, tenantId, engine, peers }, search, troubled)
    const { trunks, total } = await readApart(store, tenantId, list)
    const recent = await recentCalls(use, 'carrier', tenantId)
    const listed = cut(trunks, page).map((trunk) => ({
      ...trunk,
      recent: recent?.(trunk.name) ?? null,
    }))
    return { trunks: listed, ...endOfPage(page, listed.length, total) }
  },
})

const states = ['active', 'inactive'] as const

export const setTrunkState = defineChange({
  name: 'set_trunk_state',
  title: 'Set the state of a trunk',
  description:
    'Takes a carrier out of service, or back. inactive: calls take the next route, live ' +
    'calls go on. ' +
    'Takes effect from the next INVITE. list_trunks shows carriers; simulate_call shows ' +
    'what a call would do then.',
  effect: 'destroys',
  reason: 'required',
  expires: true,
  scopes: ['carriers:write'],
  input: z.strictObject({
    carrier: reference.describe('Id or name.'),
    state: z.enum(states),
  }),
  output: z.object({ carrier_id: z.int(), name: z.string(), state: z.enum(states) }),
  async plan({ carrier: wanted, state }, use) {
    const { store, engine, principal, now, peers } = use
    const scope = requestScope(principal, now)
    const id = await resolve(store, 'carrier', wanted, { tenantId: 'any', scope })
    const carrier = id === null ? undefined : await storeOf(carriers, { store }).find(scope, id)
    if (id === null || carrier === undefined)
      throw badReference('carrier', 'there is no such carrier')
    await carrierKind.admit(String(id), { from: null, to: null }, principal, use)
    const { name } = carrier
    const before = carrier.is_active ? ('active' as const) : ('inactive' as const)
    const after = { is_active: state === 'active' }
    // Tenants' carriers may have one name.
    const more = await countsFrom(peers, 'carriers', [id])
    const calls = engine.calls.countByCarrier(id) + (more?.(id) ?? 0)
    const own = { carrier_id: id, name }
    return {
      target: { kind: 'carrier' as const, id: String(id) },
      before: { is_active: carrier.is_active },
      after,
      effect:
        before === state
          ? `Nothing changes: the carrier ${quoted(name)} is ${state} already.`
          : state === 'inactive'
            ? `The carrier ${quoted(name)} gets no new calls${use.lasting}: they take the next ` +
              'route, or are refused where there is none.'
            : `The carrier ${quoted(name)} gets calls again${use.lasting}.`,
      affected: { live_calls: calls },
      undo: 'restores' as const,
      preview: { ...own, state: before },
      async apply() {
        await carrierKind.restore(String(id), after, use, scope)
        return { ...own, state }
      },
    }
  },
})

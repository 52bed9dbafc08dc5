/** Tools that change the state of dispatcher sets and nodes (SPECIFICATION.md §2.6, §3.2). */
import { z } from 'zod'
import { planNodeState } from '../../../resources/dispatcher/node-plan.ts'
import { planReload } from '../../../resources/dispatcher/reload-plan.ts'
import { text } from '../../../http/fields.ts'
import { defineChange } from '../../change-tool.ts'
import { theSet } from '../dispatcher-tools.ts'
import { setId } from '../shapes.ts'

const states = ['active', 'inactive', 'probing'] as const

export const setDispatcherState = defineChange({
  name: 'set_dispatcher_state',
  title: 'Set the state of a node',
  description:
    'Takes a node out of service, or back. inactive: live calls continue, no new calls; active: in service; probing: ' +
    'in service after successful probes. Takes effect from the next INVITE. The last active node of a set cannot be taken out. ' +
    'Do a dry run first. undo_change brings the previous state back, and so does the end of duration.',
  effect: 'destroys',
  reason: 'optional',
  expires: true,
  scopes: ['dispatcher:write'],
  input: z.strictObject({
    state: z.enum(states),
    setId,
    destination: text(300)
      .min(1)
      .describe('SIP URI of the node, such as sip:10.0.0.1:5060;transport=udp.'),
    expected_state: z
      .enum(states)
      .optional()
      .describe('Refused with state_differs when the node has another state now.'),
  }),
  output: z.object({
    message: z.string(),
    setId: z.int(),
    destination: z.string(),
    newState: z.enum(states),
  }),
  async plan({ state, setId: wanted, destination, expected_state: expectedState }, use) {
    await theSet(wanted, use)
    const by = use.principal.actor
    const order = { setId: wanted, destination, state, expectedState, by }
    const plan = await planNodeState(order, use)
    const own = { setId: wanted, destination, newState: state }
    return {
      ...plan,
      preview: { ...own, ...plan.preview },
      apply: async () => ({ ...own, ...(await plan.apply()) }),
    }
  },
})

export const reloadDispatchers = defineChange({
  name: 'reload_dispatchers',
  title: 'Reload dispatchers',
  description:
    'Reloads the dispatcher sets from the database. Live calls are not affected. ' +
    'Changes through the API take effect without it. Use it after editing the database directly.',
  effect: 'changes',
  reason: 'optional',
  scopes: ['dispatcher:reload'],
  input: z.strictObject({}),
  output: z.object({
    message: z.string(),
    status: z.enum(['synchronized', 'would_reload']).describe('would_reload: a dry run.'),
  }),
  plan: (_, use) => planReload(use),
})

/** The first question of an incident: what is unusual? */
import { z } from 'zod'
import {
  anomaliesView,
  findAnomalies as search,
  MAX_FINDINGS,
  USUAL_FINDINGS,
} from '../../../observe/causes/anomalies/find-anomalies.ts'
import { kinds } from '../../../observe/causes/anomalies/finding.ts'
import { periodInput, periodOf } from '../../../observe/causes/period.ts'
import { defineTool } from '../../tool.ts'

export const findAnomalies = defineTool({
  name: 'find_anomalies',
  title: 'Find anomalies',
  description:
    'Finds what is unusual in a period, the worst first: start here. ' +
    'Against the 14 days before (less than a day: their same hours): spending, new or expensive destinations, empty wallets, missing rates, unknown callers, use of keys, nodes, trunks, registrations. ' +
    'Each finding says what, since when and how much, with evidence, the tool to ask next, and a first step that can be undone.',
  effect: 'reads',
  scopes: ['cdrs:read'],
  input: z.strictObject({
    ...periodInput,
    kinds: z.array(z.enum(kinds)).min(1).max(kinds.length).optional().describe('Defaults to all.'),
    limit: z.int().min(1).max(MAX_FINDINGS).default(USUAL_FINDINGS),
  }),
  output: anomaliesView,
  run({ start, end, kinds: wanted = kinds, limit }, use) {
    const span = periodOf({ start, end }, use.now(), { longestDays: 7 })
    return search(use, use.principal, { span, wanted: [...new Set(wanted)], limit })
  },
})

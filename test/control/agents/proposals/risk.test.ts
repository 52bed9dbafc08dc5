import { expect, test } from 'vitest'
import { riskOf } from '../../../../control/agents/proposals/proposals.ts'

test.each([
  ['low', true, {}],
  ['low', true, { live_calls: 0, active_nodes_then: 3, live_calls_of_set: 900 }],
  ['medium', true, { live_calls: 1 }],
  ['medium', true, { requests_per_hour: 100 }],
  ['high', true, { requests_per_hour: 101, live_calls: 1 }],
  ['high', false, {}],
  ['high', false, { live_calls: 0 }],
] as const)(
  'the risk is %s when the change can be undone (%s) and %j are affected',
  (risk, isReversible, affected) => {
    expect(riskOf(isReversible, affected)).toBe(risk)
  },
)

import { anomaliesView } from '../observe/causes/anomalies/find-anomalies.ts'
import { keyActivityView } from '../observe/causes/key-activity.ts'
import { nodeHistoryOf } from '../observe/causes/node-history.ts'
import { failuresView } from '../observe/causes/failures.ts'
import { trunksView } from '../observe/causes/trunks.ts'
import { data, type Operations } from '../http/openapi/operation.ts'
import { exampleTime } from '../http/view-fields.ts'

const keyActivity = keyActivityView.meta({ id: 'KeyActivity' })
const trunks = trunksView.meta({ id: 'Trunks' })
const failures = failuresView.meta({ id: 'Failures' })
const anomalies = anomaliesView.meta({ id: 'Anomalies' })
const history = nodeHistoryOf.meta({ id: 'DispatcherNodeHistory' })

/** Since when, and why. */
export const causeOperations: Operations = {
  'GET /api/v1/anomalies': {
    id: 'findAnomalies',
    tag: 'System',
    summary:
      'Find what is unusual in a period against the 14 days before; of less than a day, against the same hours of them. Kinds need the scopes of what they show.',
    answer: data(anomalies, {
      start: exampleTime,
      end: exampleTime,
      total: 1,
      searched: ['destination'],
      skipped: [],
      findings: [
        {
          kind: 'destination',
          severity: 'critical',
          subject: 'customer 7',
          what: 'customer 7 "acme" spent 16.50 USD on 15 calls to 881, never on the days before: 99 % of all that it spent.',
          first_at: exampleTime,
          last_at: exampleTime,
          evidence: ['6f9619ff-8b86-4d01-b42d-00cf4fc964ff'],
          next: {
            tool: 'explain_call',
            arguments: { call_uuid: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff' },
          },
          first_step: {
            tool: 'set_spend_guard',
            arguments: { customer: 7, prefix: '881', action: 'block', duration: 86_400 },
          },
        },
      ],
    }),
  },
  'GET /api/v1/trunks': {
    id: 'listTrunks',
    tag: 'Routing',
    summary:
      'List carriers as trunks: registration, gateways, since when they are down and why. Troubled ones first.',
    answer: data(trunks, {
      trunks: [
        {
          id: 1,
          name: 'north',
          tenant: null,
          state: 'down',
          registration: null,
          gateways: [
            {
              destination: 'sip:192.0.2.9:5060;transport=udp',
              state: 'down',
              since: exampleTime,
              reason: 'no answer',
              latency_ms: null,
            },
          ],
          active_calls: 0,
          last_failure: { at: exampleTime, what: 'gateway', reason: 'no answer' },
        },
      ],
      total: 1,
    }),
  },
  'GET /api/v1/metrics/failures': {
    id: 'getFailures',
    tag: 'System',
    summary:
      'Get what failed in a period: calls by denial code, and requests of the API by route and key',
    answer: data(failures, {
      start: exampleTime,
      end: exampleTime,
      calls: { total: 9, answered: 6, failed: 1, refused: { insufficient_funds: 2 } },
      api_requests: { total: 120, failed: 3 },
      api_failures: [
        {
          route: 'GET /api/v1/customers',
          code: 'insufficient_scope',
          requests: 3,
          key: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
          first_at: exampleTime,
          last_at: exampleTime,
        },
      ],
    }),
  },
  'GET /api/v1/dispatcher/:id/nodes/:nodeId/history': {
    id: 'getDispatcherNodeHistory',
    tag: 'Dispatcher',
    summary: 'Get what changed the state of a node, and since when it is out of service',
    answer: data(history, {
      node: {
        id: 1,
        set_id: 1,
        destination: 'sip:10.0.0.1:5060;transport=udp',
        state: 'probing',
        active_calls: 0,
      },
      down_since: exampleTime,
      down_because: 'no answer',
      last_probe: { at: exampleTime, status: 0, reason: 'no answer' },
      changes: [
        {
          at: exampleTime,
          from: 'active',
          to: 'probing',
          cause: 'probe',
          reason: 'no answer',
          by: null,
          seen_by: 'node-a',
        },
      ],
      has_older: false,
    }),
  },
  'GET /api/v1/application-keys/:uuid/activity': {
    id: 'getKeyActivity',
    tag: 'Keys',
    summary:
      'Get what a key did: addresses, routes, refused attempts, changes. Requires audit:read, too.',
    answer: data(keyActivity, {
      uuid: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
      name: 'reports',
      state: 'active',
      addresses: [
        {
          address: '192.0.2.7',
          is_new: true,
          first_at: exampleTime,
          last_at: exampleTime,
          requests: 12,
          denied: 3,
        },
      ],
      routes: [{ route: 'GET /api/v1/customers', requests: 12, failed: 3 }],
      refused: [
        {
          what: 'GET /api/v1/customers',
          code: 'address_not_allowed',
          attempts: 3,
          first_at: exampleTime,
          last_at: exampleTime,
        },
      ],
      changes: [],
      hours: [{ at: exampleTime, requests: 12, failed: 3 }],
    }),
  },
}

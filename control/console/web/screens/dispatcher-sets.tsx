/** Dispatcher sets: groups of PBX nodes among which calls are distributed. */
import type { DispatcherSet } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { callerForm } from './caller-form.ts'
import { mediaForm } from './media-form.ts'
import { nodeState } from './node-state.ts'

const algorithms: Readonly<Record<string, string>> = {
  8: 'the first that answers, by priority',
  4: 'in turn',
  9: 'by weight',
  6: 'at random',
  0: 'by Call-ID',
}

const noun: ScreenNoun<DispatcherSet> = {
  one: 'dispatcher set',
  many: 'Dispatcher sets',
  scope: 'dispatcher',
  about:
    'A set is a group of PBX nodes, or other SIP servers, that take the same calls. ' +
    'Carriers and inbound routes send calls to a set.',
  effect: 'Its nodes get no new calls. Calls in progress go on.',
  nameOf: ({ endpoint_name }) => endpoint_name,
  uses: [
    {
      path: '/routing/carriers',
      one: 'carrier',
      many: 'carriers',
      isUse: (carrier, { set_id }) => carrier['inbound_set_id'] === set_id,
    },
    {
      path: '/inbound-routes',
      one: 'inbound route',
      many: 'inbound routes',
      isUse: (route, { set_id }) => route['set_id'] === set_id,
    },
  ],
  columns: [
    textColumn('name', 'Name', ({ endpoint_name }) => endpoint_name),
    figureColumn('number', 'Number', ({ set_id }) => set_id),
    textColumn('order', 'Node for a call', ({ algorithm }) => algorithms[algorithm] ?? null),
    textColumn(
      'nodes',
      'Nodes in service',
      ({ nodes }) => {
        const good = nodes.filter((node) => nodeState(node)[1] === 'in service')
        return `${good.length} of ${nodes.length}`
      },
      { to: ({ endpoint_name }) => pathOf('nodes', undefined, { q: endpoint_name }) },
    ),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
  ],
  form: {
    path: '/dispatcher',
    names: ['endpoint_name', 'algorithm', 'tenant', 'nodes'],
    more: [
      'set_id',
      'voicemail_uri',
      'spy_uri',
      ...callerForm.names,
      ...mediaForm.names,
      'probe.interval_ms',
      'probe.timeout_ms',
      'probe.fail_threshold',
      'probe.recover_threshold',
      'probe.ok_codes',
    ],
    initial: { algorithm: '8' },
    rows: { nodes: { one: 'node', names: ['host', 'internal_port', 'transport'] } },
    labels: {
      ...mediaForm.labels,
      ...callerForm.labels,
      endpoint_name: 'Name',
      algorithm: 'Node for a call',
      set_id: 'Number of the set',
      voicemail_uri: 'Voicemail address',
      spy_uri: 'Address for supervisors',
      'nodes.host': 'Address',
      'nodes.internal_port': 'Port',
      'nodes.external_port': 'Second source port',
      'nodes.is_enabled': 'In use',
      'nodes.max_calls': 'Calls at once, at most',
      'probe.interval_ms': 'Milliseconds between probes',
      'probe.timeout_ms': 'Milliseconds to answer a probe',
      'probe.fail_threshold': 'Failed probes until it is taken out',
      'probe.recover_threshold': 'Answered probes until it is taken back',
      'probe.ok_codes': 'Statuses that mean “it answers”',
    },
    hints: {
      ...mediaForm.hints,
      ...callerForm.hints,
      set_id: 'Empty: the lowest free number.',
      'nodes.host': 'An IP address or a name.',
      'nodes.internal_port': '',
      'nodes.max_calls': '0: no limit.',
      'probe.ok_codes': 'One a line: 404, or 200-299. Empty: as in the settings.',
    },
    words: { ...mediaForm.words, ...callerForm.words, algorithm: algorithms },
  },
}

export const DispatcherSetsScreen = () => <ResourceScreen noun={noun} />

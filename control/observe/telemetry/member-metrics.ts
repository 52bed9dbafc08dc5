/** The nodes that share the database, as one of them hears of them: so that the others tell of one that answers no more. */
import type { NodesPort } from '../../../schema/contracts/nodes.ts'
import type { Metric } from './metric.ts'

const states = ['starting', 'serving', 'draining', 'stopped', 'lost'] as const

export const memberMetrics = (
  nodes: Pick<NodesPort, 'list' | 'differingSettings'>,
): readonly Metric[] => [
  {
    name: 'tollgate_platform_node_state',
    type: 'gauge',
    help: '1 for the state of each node that shares the database, as this one hears of it.',
    read: () =>
      nodes.list().flatMap(({ name, state }) =>
        states.map((each) => ({
          value: state === each ? 1 : 0,
          labels: { name, state: each },
        })),
      ),
  },
  {
    name: 'tollgate_platform_node_differing_settings',
    type: 'gauge',
    help: 'Settings of each node that must be the same on all, and differ from those of another node that lives.',
    read: () =>
      nodes.list().map(({ name }) => ({
        value: nodes.differingSettings.get(name)?.length ?? 0,
        labels: { name },
      })),
  },
]

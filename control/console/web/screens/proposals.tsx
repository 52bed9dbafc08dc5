/** What agents ask people to do: what it would do now, and the two buttons. */
import { useSignal } from '@preact/signals'
import { get, send } from '../api/api.ts'
import type { Proposal } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { figureText } from '../parts/format.ts'
import { ListScreen } from '../parts/list-screen.tsx'
import { useResource } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Fact, Moment, Problem, Text } from '../parts/text.tsx'
import { proposerOf, riskWords } from './proposal-words.ts'

const riskTones = { low: 'good', medium: 'warn', high: 'bad' } as const
const stateTones = {
  open: 'warn',
  approved: 'good',
  refused: 'plain',
  expired: 'plain',
  failed: 'bad',
} as const
const states = Object.keys(stateTones)
const events = /^proposal\./

const State = ({ state }: Pick<Proposal, 'state'>) => (
  <Badge tone={stateTones[state]}>{state}</Badge>
)

const columns: readonly ShownColumn<Proposal>[] = [
  { name: 'at', title: 'Proposed', value: ({ at }) => at, show: ({ at }) => <Moment at={at} /> },
  {
    name: 'effect',
    title: 'Effect',
    value: ({ effect }) => effect,
    show: ({ effect, proposal_id }) => (
      <a href={pathOf('proposals', proposal_id)}>
        <Text value={effect} max={120} />
      </a>
    ),
  },
  {
    name: 'risk',
    title: 'Risk',
    value: ({ risk }) => risk,
    show: ({ risk }) => <Badge tone={riskTones[risk]}>{risk}</Badge>,
  },
  { name: 'state', title: 'State', value: ({ state }) => state, show: State },
  {
    name: 'by',
    title: 'By',
    value: proposerOf,
    isMinor: true,
    show: (proposal) => <Text value={proposerOf(proposal)} max={60} />,
  },
  {
    name: 'expires',
    title: 'Expires',
    value: (each) => each.expires_at,
    isMinor: true,
    show: (each) => <Moment at={each.expires_at} />,
  },
]

export function ProposalsScreen() {
  const asked = address.value.query['state'] ?? ''
  const filter = states.includes(asked) ? `&state=${asked}` : ''
  return (
    <>
      <p class="tools">
        <label>
          State{' '}
          <select
            value={asked}
            onChange={(event) => setQuery({ state: event.currentTarget.value })}
          >
            {['', ...states].map((each) => (
              <option key={each} value={each}>
                {each || 'all'}
              </option>
            ))}
          </select>
        </label>
      </p>
      <ListScreen
        label="Proposals"
        path={`/proposals?limit=200${filter}`}
        columns={columns}
        keyOf={({ proposal_id }) => proposal_id}
        empty="No agent has proposed anything."
        events={events}
      />
    </>
  )
}

export function ProposalScreen({ uuid }: { uuid: string }) {
  const path = `/proposals/${encodeURIComponent(uuid)}`
  const { data, problem, reload } = useResource(path, () => get<Proposal>(path), {
    everyMs: 10_000,
    events,
  })
  const asked = useSignal<'approve' | 'refuse' | undefined>(undefined)
  const shown = data.value
  if (shown === undefined)
    return problem.value === undefined ? (
      <p class="empty">Loading …</p>
    ) : (
      <Problem message={problem.value} />
    )
  const close = () => {
    asked.value = undefined
    reload()
  }
  return (
    <>
      <Problem message={problem.value} />
      <h2>
        <Text value={shown.effect} max={600} /> <State state={shown.state} />
      </h2>
      {shown.state === 'open' && may('proposals:write') && (
        <p class="tools" key="decide">
          <button type="button" class="primary" onClick={() => (asked.value = 'approve')}>
            Approve
          </button>
          <button type="button" onClick={() => (asked.value = 'refuse')}>
            Refuse
          </button>
        </p>
      )}
      <Facts shown={shown} />
      {asked.value !== undefined && (
        <Decide proposal={shown} decision={asked.value} path={path} onClose={close} />
      )}
    </>
  )
}

const Facts = ({ shown }: { shown: Proposal }) => (
  <dl class="facts">
    <Fact name="Risk">
      <Badge tone={riskTones[shown.risk]}>{shown.risk}</Badge> {riskWords[shown.risk]}
    </Fact>
    <Fact name="Undo">
      {shown.undo === 'undo_change' ? 'It can be undone.' : <Text value={shown.undo} />}
    </Fact>
    {Object.entries(shown.affected).map(([name, count]) => (
      <Fact key={name} name={`Now: ${name.replaceAll('_', ' ')}`}>
        {figureText(count)}
      </Fact>
    ))}
    <Fact name="Reason, in the words of the agent">
      <q>
        <Text value={shown.reason} max={500} />
      </q>
    </Fact>
    <Fact name="Proposed by">
      <Text value={proposerOf(shown)} />
    </Fact>
    <Fact name="Tool">
      <Text value={shown.tool} />
    </Fact>
    <Fact name="Arguments">
      <code>
        <Text value={JSON.stringify(shown.arguments)} max={2_000} />
      </code>
    </Fact>
    <Fact name="State now">
      <code>
        <Text value={JSON.stringify(shown.previous_state)} max={2_000} />
      </code>
    </Fact>
    <Fact name="Tenant">
      <Text value={shown.tenant_slug ?? 'the platform'} />
    </Fact>
    <Fact name="Expires">
      <Moment at={shown.expires_at} />
    </Fact>
    <Fact name="Decided">
      <Moment at={shown.decided_at} />
    </Fact>
    <Fact name="Decided by">
      <Text value={shown.decided_by} />
      {shown.decided_via === 'link' && ' by the link of a webhook'}
    </Fact>
    <Fact name="Note">
      <Text value={shown.note ?? shown.failure} max={600} />
    </Fact>
  </dl>
)

interface DecideProps {
  readonly proposal: Proposal
  readonly decision: 'approve' | 'refuse'
  readonly path: string
  readonly onClose: () => void
}

/** What is approved is what the dialog shows: the server compares its revision. */
function Decide({ proposal: { effect, revision, risk }, decision, path, onClose }: DecideProps) {
  const isApproval = decision === 'approve'
  return (
    <Dialog
      title={isApproval ? 'Make this change?' : 'Refuse this proposal?'}
      action={isApproval ? 'Approve' : 'Refuse'}
      isDangerous={isApproval && risk === 'high'}
      onConfirm={(form) => {
        const note = textIn(form, 'note')
        const body = { ...(isApproval && { revision }), ...(note !== '' && { note }) }
        return send('POST', `${path}/${decision}`, body)
      }}
      onClose={onClose}
    >
      <p>
        <Text value={effect} max={600} />
      </p>
      <label>
        Note <small>(optional; the agent reads it)</small>
        <input name="note" maxLength={500} autoComplete="off" />
      </label>
    </Dialog>
  )
}

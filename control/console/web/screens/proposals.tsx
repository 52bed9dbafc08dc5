/** The proposals of agents: their effect now, and the two buttons. */
import { useSignal } from '@preact/signals'
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Proposal } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Filter, textIn, withAll, words } from '../parts/form.tsx'
import { figureText } from '../parts/format.ts'
import { ListScreen, Loaded } from '../parts/list.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useView } from '../parts/resource.ts'
import { address } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Facts, Moment, Text } from '../parts/text.tsx'
import { actorText } from './actor-words.ts'

const riskTones = { low: 'good', medium: 'warn', high: 'bad' } as const
const riskWords = {
  low: 'It can be undone, and no call or request is affected now.',
  medium: 'It can be undone, and calls or requests are affected now.',
  high: 'It cannot be undone, or more than 100 calls or requests are affected now.',
} as const
const stateTones = {
  open: 'warn',
  approved: 'good',
  refused: 'plain',
  expired: 'plain',
  failed: 'bad',
} as const
const states = words(...Object.keys(stateTones))
const events = /^proposal\./

const proposerOf = ({ proposed_by: actor, proposed_by_name: name }: Proposal): string =>
  actorText(actor, name)

const columns: readonly ShownColumn<Proposal>[] = [
  momentColumn('at', 'Proposed', ({ at }) => at),
  textColumn('effect', 'Effect', ({ effect }) => effect, {
    show: ({ effect, proposal_id }) => (
      <a href={pathOf('proposals', proposal_id)}>
        <Text value={effect} max={300} />
      </a>
    ),
  }),
  textColumn('risk', 'Risk', ({ risk }) => risk, { tone: ({ risk }) => riskTones[risk] }),
  textColumn('state', 'State', ({ state }) => state, { tone: ({ state }) => stateTones[state] }),
  textColumn('by', 'By', proposerOf, { isMinor: true }),
  momentColumn('expires', 'Expires', (proposal) => proposal.expires_at, { isMinor: true }),
]

export function ProposalsScreen() {
  const asked = address.value.query['state'] ?? ''
  const filter = asked in states ? `&state=${asked}` : ''
  return (
    <ListScreen<Proposal>
      label="Proposals"
      about="What agents would like to change: a person decides."
      path={`/proposals?limit=200${filter}`}
      columns={columns}
      keyOf={({ proposal_id }) => proposal_id}
      empty="No agent has proposed anything."
      events={events}
      isWrapped
      filters={<Filter label="State" name="state" options={withAll(states)} />}
    />
  )
}

type Decision = 'approve' | 'refuse'

export function ProposalScreen({ uuid }: { uuid: string }) {
  const path = `/proposals/${encodeURIComponent(uuid)}`
  const proposal = useView<Proposal>(path, { everyMs: 10_000, events })
  const asked = useSignal<Decision | undefined>(undefined)
  const close = () => {
    asked.value = undefined
    proposal.reload()
  }
  return (
    <Loaded of={proposal}>
      {(shown) => (
        <>
          <PageHead state={[stateTones[shown.state], shown.state]}>
            {shown.state === 'open' && may('proposals:write') && (
              <>
                <button type="button" onClick={() => (asked.value = 'refuse')}>
                  Refuse
                </button>
                <button type="button" class="primary" onClick={() => (asked.value = 'approve')}>
                  Approve
                </button>
              </>
            )}
          </PageHead>
          <p class="told">
            <Text value={shown.effect} max={600} />
          </p>
          <ProposalFacts shown={shown} />
          <details class="more">
            <summary>The call of the tool</summary>
            <Facts
              of={{
                Tool: <Text value={shown.tool} />,
                Arguments: <Json value={shown.arguments} />,
                'State now': <Json value={shown.previous_state} />,
              }}
            />
          </details>
          {asked.value !== undefined && (
            <Decide proposal={shown} decision={asked.value} path={path} onClose={close} />
          )}
        </>
      )}
    </Loaded>
  )
}

const ProposalFacts = ({ shown }: { shown: Proposal }) => (
  <Facts
    of={{
      Risk: (
        <>
          <Badge tone={riskTones[shown.risk]}>{shown.risk}</Badge> {riskWords[shown.risk]}
        </>
      ),
      Undo: shown.undo === 'undo_change' ? 'It can be undone.' : <Text value={shown.undo} />,
      ...Object.fromEntries(
        Object.entries(shown.affected).map(([name, count]) => [
          `Now: ${name.replaceAll('_', ' ')}`,
          figureText(count),
        ]),
      ),
      'Reason, in the words of the agent': (
        <q>
          <Text value={shown.reason} max={500} />
        </q>
      ),
      'Proposed by': <Text value={proposerOf(shown)} />,
      Tenant: <Text value={shown.tenant_slug ?? 'the platform'} />,
      Expires: <Moment at={shown.expires_at} />,
      Decided: <Moment at={shown.decided_at} />,
      'Decided by': (
        <>
          <Text
            value={
              shown.decided_by === null ? null : actorText(shown.decided_by, shown.decided_by_name)
            }
          />
          {shown.decided_via === 'link' && ' by the link of a webhook'}
        </>
      ),
      Note: <Text value={shown.note ?? shown.failure} max={600} />,
    }}
  />
)

const Json = ({ value }: { value: unknown }) => (
  <code>
    <Text value={JSON.stringify(value)} max={2_000} />
  </code>
)

interface DecideProps {
  readonly proposal: Proposal
  readonly decision: Decision
  readonly path: string
  readonly onClose: () => void
}

/** Approves the change that the dialog shows: the server compares its revision. */
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
      <Field
        label="Note"
        hint="optional; the agent reads it"
        name="note"
        maxLength={500}
        autoComplete="off"
      />
    </Dialog>
  )
}

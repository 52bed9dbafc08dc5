/** One application key: what it may do, from where, and how much it was used each day. */
import { get } from '../api/api.ts'
import type { ApplicationKey, KeyUsage } from '../api/views.ts'
import { figureText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Sparkline } from '../parts/sparkline.tsx'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Fact, Moment, Problem, Text } from '../parts/text.tsx'

type Day = KeyUsage['days'][number]

const columns: readonly ShownColumn<Day>[] = [
  {
    name: 'date',
    title: 'Day (UTC)',
    value: ({ date }) => date,
    show: ({ date }) => <time dateTime={date}>{date}</time>,
  },
  {
    name: 'requests',
    title: 'Requests',
    value: ({ requests }) => requests,
    isFigure: true,
    show: ({ requests }) => figureText(requests),
  },
]

export function KeyScreen({ uuid }: { uuid: string }) {
  const path = `/application-keys/${encodeURIComponent(uuid)}`
  const options = { everyMs: 10_000 }
  const key = useResource(path, () => get<ApplicationKey>(path), options)
  const usage = useResource(`${path}/usage`, () => get<KeyUsage>(`${path}/usage`), options)
  const shown = key.data.value
  const days = usage.data.value?.days
  const problem = key.problem.value ?? usage.problem.value
  // Both at once: nothing moves when the other one comes.
  if (shown === undefined || days === undefined)
    return problem === undefined ? <p class="empty">Loading …</p> : <Problem message={problem} />
  return (
    <>
      <Problem message={problem} />
      <h2>
        <Text value={shown.name} />
      </h2>
      <dl class="facts">
        <Fact name="State">{shown.state}</Fact>
        <Fact name="Scopes">
          <Text value={shown.scopes.join(', ')} max={1_000} />
        </Fact>
        <Fact name="Tenant">
          <Text value={shown.tenant_slug ?? 'all'} />
        </Fact>
        <Fact name="Allowed addresses">
          <Text value={shown.allowed_ips.join(', ') || 'all'} max={500} />
        </Fact>
        <Fact name="Requests a minute, at most">{figureText(shown.rate_limit_rpm)}</Fact>
        <Fact name="Owner">
          <Text value={shown.owner_username} />
        </Fact>
        <Fact name="Last used">
          <Moment at={shown.last_used_at} />
        </Fact>
        <Fact name="Requests of thirty days">
          <Sparkline values={days.map(({ requests }) => requests)} />{' '}
          {figureText(days.reduce((sum, { requests }) => sum + requests, 0))}
        </Fact>
      </dl>
      <Table
        label="Requests by day"
        rows={days.toReversed()}
        columns={columns}
        keyOf={({ date }) => date}
        empty="The key was not used."
      />
    </>
  )
}

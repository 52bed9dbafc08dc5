/**
 * From an empty system to a first call: the present state by the API, and steps that show their
 * requests.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send, type ConsoleAnswer } from '../api/api.ts'
import type { TestCall } from '../api/views.ts'
import { onEvent } from '../api/live.ts'
import { pathOf } from '../parts/address.ts'
import { sessionEnded } from '../api/session.ts'
import { onForm } from '../parts/form.tsx'
import { durationText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Badge, Problem } from '../parts/text.tsx'
import { visibleLines } from '../parts/visible-text.ts'
import { loadCall } from './call.tsx'
import { findSetup, setup } from './setup.ts'
import { curlOf, steps, type SetupStep } from './steps.ts'

export function StartScreen() {
  useEffect(() => {
    void findSetup()
    return onEvent(({ type }) => void (type === 'call.ended' && findSetup()))
  }, [])
  const known = setup.value
  if (known === undefined) return <p>Loading …</p>
  const done = steps.filter(({ name }) => known[name]).length
  const isReady = done === steps.length
  return (
    <>
      <p role="status">
        {isReady
          ? 'All steps are done: the first call has its record.'
          : `${done} of ${steps.length} steps to the first call are done.`}
      </p>
      <progress value={done} max={steps.length} aria-label="Steps that are done" />
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.name}>
            <StepCard step={step} isDone={known[step.name]} />
          </li>
        ))}
      </ol>
      <h2>After the first call</h2>
      <ul>
        <li>
          <a href={pathOf('carriers')}>Connect a carrier</a>: it sends calls, and takes those that
          routes lead to it.
        </li>
        <li>
          <a href={pathOf('phones')}>Register a phone</a>: it calls and is called, and a customer
          pays.
        </li>
        <li>
          <a href={pathOf('users')}>Add users</a>, and <a href={pathOf('keys')}>keys</a> for
          programs and AI agents.
        </li>
      </ul>
    </>
  )
}

function StepCard({ step, isDone }: { step: SetupStep; isDone: boolean }) {
  const { name, title, about, command, screen, fields, action, requests } = step
  const given = useSignal(Object.fromEntries(fields.map((field) => [field.name, field.value])))
  const problem = useSignal<string | undefined>(undefined)
  const placed = useSignal<TestCall | undefined>(undefined)
  const isBusy = useSignal(false)
  const id = `step-${name}`

  const submit = async (): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const answer = await sendAll(requests(given.value))
    isBusy.value = false
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    if (answer.kind === 'ok' && name === 'call') placed.value = answer.data as TestCall
    return findSetup()
  }
  return (
    <section aria-labelledby={id} class="fact">
      <h2 id={id}>
        {title} <Badge tone={isDone ? 'good' : 'plain'}>{isDone ? '✓ done' : 'to do'}</Badge>
      </h2>
      <p>
        {about} {command !== undefined && <code>{command}</code>}
      </p>
      {(!isDone || name === 'call') && (
        <form class="fields" onSubmit={onForm(() => void submit())}>
          {fields.map((field) => (
            <label key={field.name}>
              <span>{field.label}</span>
              <input
                {...{ name: field.name, value: given.value[field.name] ?? '', maxLength: 253 }}
                {...(field.pattern !== undefined && { pattern: field.pattern })}
                required={field.name !== 'prefix'}
                autoComplete="off"
                onInput={({ currentTarget: { value } }) =>
                  (given.value = { ...given.value, [field.name]: value.trim() })
                }
              />
              <small>{field.hint}</small>
            </label>
          ))}
          <p class="buttons">
            <button class="primary" disabled={isBusy.value}>
              {action}
            </button>
          </p>
        </form>
      )}
      {isDone && screen !== undefined && (
        <p>
          <a href={pathOf(screen)}>See what there is</a>
        </p>
      )}
      <Problem message={problem.value} />
      {placed.value !== undefined && <PlacedCall uuid={placed.value.call_uuid} />}
      {name === 'call' && (
        <p>
          <a href={pathOf('simulator', undefined, { ...given.value, source: '127.0.0.1' })}>
            Simulate it first
          </a>
          : where it would go, and what it would cost.
        </p>
      )}
      <Requests
        text={requests(given.value)
          .map((each) => curlOf(each, location.origin))
          .join('\n')}
        title={title}
      />
    </section>
  )
}

const states = {
  originating: 'The call is being placed …',
  ringing: 'It rings …',
  answered: 'It is answered. Tollgate hangs up in a few seconds.',
} as const

/** How a call goes that was placed here. */
function PlacedCall({ uuid }: { uuid: string }) {
  const { data, problem } = useResource(uuid, () => loadCall(uuid), {
    everyMs: 1_000,
    events: ({ data: about }) => about['call_uuid'] === uuid,
  })
  if (data.value === undefined) return <Problem message={problem.value} />
  const { status, record } = data.value
  const isOver = status.disposition !== null
  const isAnswered = status.disposition === 'ANSWERED'
  return (
    <p role="status">
      {!isOver && states[status.status as keyof typeof states]}
      {isOver && (
        <>
          {isAnswered ? <Badge tone="good">answered</Badge> : <Badge tone="bad">failed</Badge>}{' '}
          {isAnswered
            ? `It lasted ${durationText(status.billsec)} and cost ` +
              `${moneyText(record?.cost_exact ?? null, record?.currency ?? null)}. `
            : `${status.denial_text ?? status.hangup_cause ?? ''} `}
          <a href={pathOf('calls', uuid)}>Look at the call</a>
        </>
      )}
    </p>
  )
}

/**
 * One after the other; the first that fails ends them. What is there already is no failure: a step
 * may be repeated.
 */
async function sendAll(
  requests: ReturnType<SetupStep['requests']>,
): Promise<ConsoleAnswer<unknown>> {
  let last: ConsoleAnswer<unknown> = { kind: 'ok', data: undefined, meta: undefined }
  for (const [index, { method, path, body }] of requests.entries()) {
    last = await send(method, path, body)
    const isThere = last.kind === 'failed' && last.code === 'name_taken'
    if (last.kind !== 'ok' && !(isThere && index < requests.length - 1)) return last
  }
  return last
}

function Requests({ text, title }: { text: string; title: string }) {
  const outcome = useSignal('')
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => (outcome.value = 'Copied'),
      () => (outcome.value = 'The browser does not allow it: select the text'),
    )
  }
  return (
    <details>
      <summary>The same by the API</summary>
      <pre tabIndex={0} aria-label={`${title}: request`}>
        {visibleLines(text, 4_000)}
      </pre>
      <p class="buttons">
        <button type="button" onClick={copy} aria-label={`${title}: copy the request`}>
          Copy
        </button>
        <span role="status">{outcome.value}</span>
      </p>
    </details>
  )
}

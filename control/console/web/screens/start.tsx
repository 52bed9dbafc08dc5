/** From an empty system to a first call. Each step shows the request that it makes. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send, type Answer } from '../api/api.ts'
import type { Simulation } from '../api/views.ts'
import { onEvent } from '../api/live.ts'
import { pathOf } from '../parts/address.ts'
import { sessionEnded } from '../api/session.ts'
import { Badge, Problem } from '../parts/text.tsx'
import { visibleLines } from '../parts/visible-text.ts'
import { Result } from './simulator.tsx'
import { findSetup, setup } from './setup.ts'
import { curlOf, steps, type Step } from './steps.ts'

export function StartScreen() {
  useEffect(() => {
    void findSetup()
    return onEvent(({ type }) => void (type === 'call.ended' && findSetup()))
  }, [])
  const known = setup.value
  if (known === undefined) return <p>Loading …</p>
  const done = steps.filter(({ name }) => known[name]).length
  return (
    <>
      <p role="status">
        {done === steps.length
          ? 'All steps are done: the first call has its record.'
          : `${done} of ${steps.length} steps to the first call are done.`}
      </p>
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.name}>
            <StepCard step={step} isDone={known[step.name]} />
          </li>
        ))}
      </ol>
    </>
  )
}

function StepCard({ step, isDone }: { step: Step; isDone: boolean }) {
  const { name, title, about, fields, action, requests } = step
  const given = useSignal(Object.fromEntries(fields.map((field) => [field.name, field.value])))
  const problem = useSignal<string | undefined>(undefined)
  const simulation = useSignal<Simulation | undefined>(undefined)
  const isBusy = useSignal(false)
  const id = `step-${name}`

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    if (isBusy.value) return
    isBusy.value = true
    const answer = await sendAll(requests(given.value))
    isBusy.value = false
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    if (answer.kind === 'ok' && name === 'call') simulation.value = answer.data as Simulation
    return findSetup()
  }
  return (
    <section aria-labelledby={id} class="fact">
      <h2 id={id}>
        {title} <Badge tone={isDone ? 'good' : 'plain'}>{isDone ? '✓ done' : 'to do'}</Badge>
      </h2>
      <p>{about}</p>
      {(!isDone || name === 'call') && (
        <form class="fields" onSubmit={(event) => void submit(event)}>
          {fields.map((field) => (
            <label key={field.name}>
              <span>
                {field.label} {field.hint !== undefined && <small>({field.hint})</small>}
              </span>
              <input
                {...{ name: field.name, value: given.value[field.name] ?? '', maxLength: 253 }}
                {...(field.pattern !== undefined && { pattern: field.pattern })}
                required={field.name !== 'prefix'}
                autoComplete="off"
                onInput={({ currentTarget: { value } }) =>
                  (given.value = { ...given.value, [field.name]: value.trim() })
                }
              />
            </label>
          ))}
          <p class="buttons">
            <button class="primary" disabled={isBusy.value}>
              {action}
            </button>
          </p>
        </form>
      )}
      <Problem message={problem.value} />
      {simulation.value !== undefined && (
        <>
          <Result simulation={simulation.value} />
          <p>
            <a href={pathOf('simulator', undefined, given.value)}>Open in the route simulator</a>
          </p>
        </>
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

/** One after the other; the first that fails ends them. What is there already is no failure: a step may be repeated. */
async function sendAll(requests: ReturnType<Step['requests']>): Promise<Answer<unknown>> {
  let last: Answer<unknown> = { kind: 'ok', data: undefined, meta: undefined }
  for (const [index, { method, path, body }] of requests.entries()) {
    last = await send(method, path, body)
    const isThere = last.kind === 'failed' && last.code === 'name_taken'
    if (last.kind !== 'ok' && !(isThere && index < requests.length - 1)) return last
  }
  return last
}

function Requests({ text, title }: { text: string; title: string }) {
  const told = useSignal('')
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => (told.value = 'Copied'),
      () => (told.value = 'The browser does not allow it: select the text'),
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
        <span role="status">{told.value}</span>
      </p>
    </details>
  )
}

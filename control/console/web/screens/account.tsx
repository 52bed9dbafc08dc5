/** The account of the user: the second factor of the sign-in, and sessions. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { type ConsoleAnswer, get, send } from '../api/api.ts'
import type { Enrolment, SecondFactorState, SeenSession } from '../api/views.ts'
import { CodeField, NewAuthenticator, RecoveryCodes } from '../parts/authenticator.tsx'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { enteredIn, Field, textIn } from '../parts/form.tsx'
import { type Action, List } from '../parts/list.tsx'
import { useResource } from '../parts/resource.ts'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'

export function AccountScreen() {
  const factor = useResource('second factor', () => get<SecondFactorState>('/auth/second-factor'))
  const { value: problem } = factor.problem
  // Nothing below moves when it is there.
  if (factor.data.value === undefined) return <Problem message={problem} />
  return (
    <>
      <SecondFactor state={factor.data.value} problem={problem} reload={factor.reload} />
      <Sessions />
    </>
  )
}

interface SecondFactorProps {
  readonly state: SecondFactorState
  readonly problem: string | undefined
  readonly reload: () => void
}

type Asked = 'enrol' | 'confirm' | 'codes' | 'remove'

function SecondFactor({ state, problem, reload }: SecondFactorProps) {
  const asked = useSignal<Asked | undefined>(undefined)
  const enrolment = useSignal<Enrolment | undefined>(undefined)
  const codes = useSignal<readonly string[] | undefined>(undefined)
  const ask = (what: Asked) => (): void => {
    codes.value = undefined
    asked.value = what
  }
  const close = (isDone: boolean): void => {
    // The secret has been made: its first code is asked for.
    asked.value = asked.value === 'enrol' && isDone ? 'confirm' : undefined
    reload()
  }
  return (
    <section aria-labelledby="second-factor">
      <h2 id="second-factor">Second factor</h2>
      <Problem message={problem} />
      <FactorText state={state} />
      {codes.value && (
        <div class="notice">
          <RecoveryCodes codes={codes.value} />
        </div>
      )}
      {
        <p class="buttons">
          {state.is_on ? (
            <>
              <button type="button" onClick={ask('codes')}>
                New recovery codes
              </button>
              {!state.is_required && (
                <button type="button" class="danger" onClick={ask('remove')}>
                  Turn off
                </button>
              )}
            </>
          ) : (
            <button type="button" onClick={ask('enrol')}>
              Set up
            </button>
          )}
        </p>
      }
      {asked.value && (
        <FactorDialog
          key={asked.value}
          asked={asked.value}
          enrolment={enrolment.value}
          onEnrolment={(made) => (enrolment.value = made)}
          onCodes={(made) => (codes.value = made)}
          onClose={close}
        />
      )}
    </section>
  )
}

const FactorText = ({ state }: { state: SecondFactorState }) => (
  <p>
    <Badge tone={state.is_on ? 'good' : 'plain'}>{state.is_on ? 'on' : 'off'}</Badge>{' '}
    {state.is_on ? (
      <>
        since <Moment at={state.since} />. Recovery codes left: {state.recovery_codes_left}.
      </>
    ) : (
      'A password alone opens a session. An authenticator on your telephone makes it two.'
    )}
    {state.is_required && ' It is required of you.'}
  </p>
)

interface FactorDialogProps {
  readonly asked: Asked
  readonly enrolment: Enrolment | undefined
  readonly onEnrolment: (made: Enrolment) => void
  readonly onCodes: (codes: readonly string[]) => void
  readonly onClose: (isDone: boolean) => void
}

interface NewCodes {
  readonly recovery_codes: readonly string[]
}

const path = '/auth/second-factor'

function FactorDialog({ asked, enrolment, onEnrolment, onCodes, onClose }: FactorDialogProps) {
  const withCodes = (answer: ConsoleAnswer<NewCodes>): ConsoleAnswer<NewCodes> => {
    if (answer.kind === 'ok') onCodes(answer.data.recovery_codes)
    return answer
  }
  const proof = (form: FormData) => ({
    password: enteredIn(form, 'password'),
    code: textIn(form, 'code'),
  })
  const dialogs: Readonly<
    Record<
      Asked,
      {
        readonly title: string
        readonly action: string
        readonly content: ComponentChildren
        readonly confirm: (form: FormData) => Promise<ConsoleAnswer<unknown>>
      }
    >
  > = {
    enrol: {
      title: 'Set up a second factor',
      action: 'Go on',
      content: <OwnPassword />,
      confirm: async (form) => {
        const answer = await send<Enrolment>('POST', path, {
          password: enteredIn(form, 'password'),
        })
        if (answer.kind === 'ok') onEnrolment(answer.data)
        return answer
      },
    },
    confirm: {
      title: 'Set up a second factor',
      action: 'Turn on',
      content: (
        <>
          {enrolment && <NewAuthenticator enrolment={enrolment} />}
          <CodeField hint="six digits of the authenticator" />
        </>
      ),
      confirm: async (form) =>
        withCodes(await send('POST', `${path}/confirmation`, { code: textIn(form, 'code') })),
    },
    codes: {
      title: 'Make new recovery codes?',
      action: 'Make new codes',
      content: (
        <>
          <p>The old ones open nothing any more.</p>
          <Proof />
        </>
      ),
      confirm: async (form) => withCodes(await send('POST', `${path}/recovery-codes`, proof(form))),
    },
    remove: {
      title: 'Turn off the second factor?',
      action: 'Turn off',
      content: (
        <>
          <p>The password alone opens a session then.</p>
          <Proof />
        </>
      ),
      confirm: (form) => send('POST', `${path}/removal`, proof(form)),
    },
  }
  const { title, action, content, confirm } = dialogs[asked]
  return (
    <Dialog
      title={title}
      action={action}
      isDangerous={asked === 'remove'}
      onConfirm={confirm}
      onClose={onClose}
    >
      {content}
    </Dialog>
  )
}

const OwnPassword = () => (
  <Field
    label="Password"
    name="password"
    type="password"
    autoComplete="current-password"
    required
    maxLength={128}
  />
)

const Proof = () => (
  <>
    <OwnPassword />
    <CodeField hint="of the authenticator, or a recovery code" />
  </>
)

const REFRESH_MS = 30_000

function Sessions() {
  const { data, problem, reload } = useResource(
    'sessions',
    () => get<readonly SeenSession[]>('/auth/sessions'),
    { everyMs: REFRESH_MS },
  )
  return (
    <>
      <h2>Sessions</h2>
      <List<SeenSession>
        label="Sessions"
        rows={data.value}
        columns={sessionColumns}
        keyOf={(session) => session.session_id}
        empty="There is no session."
        problem={problem.value}
        reload={reload}
        create={endOthers}
        nameOf={(session) => `of ${session.address}`}
        actions={(session) => (session.is_current ? [] : [endOne(session)])}
      />
    </>
  )
}

/** The browser and the system, of all that a browser says of itself; another program as it is. */
function programOf(userAgent: string | null): string | null {
  const browsers = ['Edg', 'OPR', 'Firefox', 'HeadlessChrome', 'Chrome', 'Safari']
  const found = browsers.find((each) => userAgent?.includes(`${each}/`) === true)
  if (userAgent === null || found === undefined) return userAgent
  const system = /Android|iPhone|iPad|Windows|Mac OS X|CrOS|Linux/.exec(userAgent)?.[0]
  const browser = { Edg: 'Edge', OPR: 'Opera' }[found] ?? found.replace('Headless', '')
  return system === undefined ? browser : `${browser}, ${system}`
}

const sessionColumns = [
  textColumn<SeenSession>('program', 'Program', (each) => programOf(each.user_agent), {
    also: ({ address }) => address,
    second: ({ address }) => <Text value={address} />,
  }),
  momentColumn<SeenSession>('since', 'Since', ({ since }) => since),
  momentColumn<SeenSession>('seen', 'Last seen', (each) => each.last_seen_at),
  textColumn<SeenSession>('state', 'State', (each) => (each.is_current ? 'this session' : 'open'), {
    tone: (each) => (each.is_current ? 'good' : 'plain'),
  }),
]

const endOthers: Action = {
  text: 'End all others',
  title: 'End all other sessions?',
  confirm: 'End',
  isDangerous: true,
  ask: <p>This session goes on. Whoever uses the others has to sign in again.</p>,
  onConfirm: () => send('DELETE', '/auth/sessions'),
}

const endOne = (session: SeenSession): Action => ({
  text: 'End',
  title: 'End this session?',
  isDangerous: true,
  ask: <p>Whoever uses it has to sign in again.</p>,
  onConfirm: () => send('DELETE', `/auth/sessions/${encodeURIComponent(session.session_id)}`),
})

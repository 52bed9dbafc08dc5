/** The secret of an authenticator and recovery codes, which are shown once. */
import type { Enrolment } from '../api/views.ts'
import { Field } from './form.tsx'
import { CopyButton } from './text.tsx'

export const NewAuthenticator = ({ enrolment }: { enrolment: Enrolment }) => (
  <>
    <p>Scan this with an authenticator on your telephone, or type the key into it.</p>
    <Picture svg={enrolment.qr_svg} />
    <p>
      <code class="token">{enrolment.secret}</code> <CopyButton text={enrolment.secret} />
    </p>
  </>
)

/** Draws the shape of the picture: the policy of the page allows no picture from a text. */
function Picture({ svg }: { svg: string }) {
  const [, viewBox] = /viewBox="([\d .]+)"/.exec(svg) ?? []
  const [, shape] = / d="([^"]+)"/.exec(svg) ?? []
  if (viewBox === undefined || shape === undefined) return null
  return (
    <svg
      class="qr"
      viewBox={viewBox}
      width="200"
      height="200"
      role="img"
      aria-label="Picture of the key"
    >
      <path d={shape} />
    </svg>
  )
}

export const RecoveryCodes = ({ codes }: { codes: readonly string[] }) => (
  <>
    <p>
      Keep these recovery codes apart from your telephone. Each opens one session without the
      authenticator, and they are shown only now.
    </p>
    <ul class="recovery-codes">
      {codes.map((code) => (
        <li key={code}>
          <code>{code}</code>
        </li>
      ))}
    </ul>
    <CopyButton text={codes.join('\n')} label="Copy the codes" />
  </>
)

export const CodeField = ({ label = 'Code', hint }: { label?: string; hint?: string }) => (
  <Field
    label={label}
    hint={hint}
    name="code"
    autoComplete="one-time-code"
    required
    minLength={6}
    maxLength={20}
    autoFocus
  />
)

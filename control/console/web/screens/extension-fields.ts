/** The form of an extension as the body of a request: of one that exists, only what has changed. */
import type { ExtensionDetails } from '../api/views.ts'

type Body = Readonly<Record<string, unknown>>

export function extensionBody(
  textOf: (name: string) => string,
  before: ExtensionDetails | undefined,
): Body {
  const codecs = textOf('codecs')
    .split(',')
    .map((codec) => codec.trim())
    .filter((codec) => codec !== '')
  const body: Body = {
    display_name: textOf('display_name'),
    email: textOf('email') || null,
    voicemail_enabled: textOf('voicemail') === 'on',
    call_recording: textOf('recording'),
    media: textOf('media') || null,
    media_profile: textOf('media_profile'),
    codecs: codecs.length === 0 ? null : codecs,
    dtmf: textOf('dtmf'),
  }
  if (before !== undefined) return changed(body, { ...before })
  const tenant = textOf('tenant')
  return { ...body, extension: textOf('extension'), ...(tenant !== '' && { tenant }) }
}

const changed = (body: Body, before: Body): Body =>
  Object.fromEntries(
    Object.entries(body).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  )

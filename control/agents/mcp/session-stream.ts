/** The stream of a session (`GET /mcp` of the protocols of 2025), which carries what no request has asked for. */

/** Proxies close a connection on which nothing moves. */
const KEEP_ALIVE_MS = 15_000

interface SessionStreamDeps {
  /** Steady time in milliseconds. */
  readonly now: () => number
  /** The reader has read everything. */
  readonly onDrained: () => void
  /** The reader is gone. */
  readonly onGone: () => void
}

interface SessionStream {
  readonly response: Response
  readonly tell: (uri: string) => void
  readonly keepAlive: () => void
  readonly end: () => void
}

export function sessionStream({ now, onDrained, onGone }: SessionStreamDeps): SessionStream {
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let writtenAt = now()
  const write = (text: string): void => {
    writtenAt = now()
    controller?.enqueue(encoder.encode(text))
  }
  const body = new ReadableStream<Uint8Array>({
    start(opened) {
      controller = opened
      // With it the client is sent the head of the response.
      write(': open\n\n')
    },
    pull: onDrained,
    cancel() {
      controller = undefined
      onGone()
    },
  })
  return {
    response: new Response(body, { headers }),
    tell: (uri) => write(`event: message\ndata: ${notificationOf(uri)}\n\n`),
    keepAlive() {
      // A reader that does not read is sent nothing more.
      const isRead = (controller?.desiredSize ?? 0) > 0
      if (isRead && now() - writtenAt >= KEEP_ALIVE_MS) write(': keepalive\n\n')
    },
    end() {
      controller?.close()
      controller = undefined
    },
  }
}

const headers = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
}

const notificationOf = (uri: string): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })

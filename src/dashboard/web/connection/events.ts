import type { Frame } from '../../protocol.js'

/** An event of a stream, before its data is read. */
interface RawEvent {
  readonly event: string
  readonly id: string | undefined
  readonly data: string
}

/** Takes the text of a stream in any pieces and gives whole events; comments (beats) give none. */
export function eventReader(): (piece: string) => Frame[] {
  let rest = ''
  return (piece) => {
    rest += piece.replaceAll('\r\n', '\n')
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    return blocks.map(parseEvent).filter((event) => event !== undefined)
  }
}

function parseEvent(block: string): Frame | undefined {
  const { event, id, data } = block.split('\n').reduce<RawEvent>(
    (sofar, line) => {
      if (line.startsWith('event:')) return { ...sofar, event: line.slice(6).trim() }
      if (line.startsWith('id:')) return { ...sofar, id: line.slice(3).trim() }
      if (line.startsWith('data:')) return { ...sofar, data: sofar.data + line.slice(5).trimStart() }
      return sofar
    },
    { event: '', id: undefined, data: '' },
  )
  if (data === '' || event === '') return undefined
  return { event, id, data: JSON.parse(data) as unknown } as Frame
}

/** Calls `onPiece` with each decoded piece until the stream ends or is aborted. */
export async function readText(stream: ReadableStream<Uint8Array>, onPiece: (text: string) => void): Promise<void> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onPiece(decoder.decode(value, { stream: true }))
  }
}

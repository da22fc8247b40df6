"""Measures from the start of a process to the first token, beside the provider's own SDK: `cold_start.py [ROUNDS]`.

Both ask the fake API in turn, in fresh processes, and the medians are compared. Where it says `preloaded`, the library
was loaded before the clock started, as it is while a person types (`timbal.models.preload`). The time of the processor
is told beside that of the wall: where others work on the machine too, it is the steadier of the two.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.fake_api import fake_api  # noqa: E402

CLOCK = "import time; start = time.perf_counter(), time.process_time()\n"
TELL = "print(time.perf_counter() - start[0], time.process_time() - start[1])\n"

HI = '[{"role": "user", "content": "hi"}]'
RAW = {
    'Model("openai/gpt-5", api="chat")': f"""
from openai import OpenAI
for chunk in OpenAI().chat.completions.create(model="gpt-5", messages={HI}, stream=True):
    if chunk.choices[0].delta.content:
        break
""",
    'Model("openai/gpt-5", api="responses")': f"""
from openai import OpenAI
for event in OpenAI().responses.create(model="gpt-5", input={HI}, stream=True):
    if event.type == "response.output_text.delta":
        break
""",
    'Model("anthropic/claude-sonnet-4-5")': f"""
from anthropic import Anthropic
with Anthropic().messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages={HI}) as stream:
    next(iter(stream.text_stream))
""",
    'Model("google/gemini-2.5-pro")': """
from google import genai
client = genai.Client()
for chunk in client.models.generate_content_stream(model="gemini-2.5-pro", contents="hi"):
    if chunk.text:
        break
""",
}

OURS = """
import asyncio
from timbal import Agent, Model
async def first_token():
    async for event in Agent("a", {model})("hi"):
        if event.type == "DELTA":
            return
async def main():
    await first_token()
"""

PRELOADED = """
import threading
from timbal import Model
{model}.preload()
[thread.join() for thread in threading.enumerate() if thread is not threading.main_thread()]
"""


def seconds(code: str, environment: dict[str, str]) -> tuple[float, float]:
    """Of the wall's clock, and of the processor's."""
    ran = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    wall, processor = map(float, ran.stdout.split())
    return wall, processor


def main(rounds: int) -> None:
    with fake_api() as api:
        api.say({"content": "hello"})
        environment = os.environ | api.environment
        for model, raw in RAW.items():
            ours = OURS.format(model=model) + "asyncio.run(main())\n" + TELL
            cases = {
                "raw SDK": CLOCK + raw + TELL,
                "ours": CLOCK + ours,
                "ours, preloaded": PRELOADED.format(model=model) + CLOCK + ours,
            }
            times: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
            for _ in range(rounds):
                for case, code in cases.items():
                    times[case].append(seconds(code, environment))
            medians = {case: [median(kind) for kind in zip(*found, strict=True)] for case, found in times.items()}
            for case, found in medians.items():
                told = [f"{t:6.2f} s {t / floor:5.2f}" for t, floor in zip(found, medians["raw SDK"], strict=True)]
                print(f"{model:38} {case:15} wall {told[0]}   processor {told[1]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
